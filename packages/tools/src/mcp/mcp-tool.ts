import type { ContentPart, ToolSchema } from "@cria/core";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { BaseTool, type ExecuteOptions, type ToolResponse, type ToolResult } from "../base-tool.js";
import { describeParts } from "../describe-parts.js";
import type { McpConnection } from "./mcp-connection.js";

/** One tool of an MCP server. It keeps no state for a trajectory; the connection is shared and closed by `dispose`. */
export class McpTool extends BaseTool {
  constructor(
    private readonly connection: McpConnection,
    /** The tool's name on its server; the schema's may have a prefix. */
    private readonly remoteName: string,
    schema: ToolSchema,
  ) {
    super(schema);
  }

  override get origin() {
    return "mcp" as const;
  }

  async execute(
    _instanceId: string,
    parameters: Record<string, unknown>,
    { signal }: ExecuteOptions = {},
  ): Promise<ToolResult> {
    const result = await this.connection.callTool(this.remoteName, parameters, signal);
    const response = readResult(result);
    if (result.isError) {
      response.text = `error: ${response.text}`;
      if (response.content) response.content = [{ type: "text", text: "error:" }, ...response.content];
    }
    return { response, reward: 0, metrics: { mcp_error: result.isError ? 1 : 0 } };
  }

  override async dispose(): Promise<void> {
    await this.connection.close();
  }
}

/** Joins the texts, keeps images, and keeps apart or names other content. */
function readResult(result: CallToolResult): ToolResponse {
  const parts: ContentPart[] = [];
  const media: Record<"video" | "audio", unknown[]> = { video: [], audio: [] };
  const say = (text: string) => parts.push({ type: "text", text });
  const show = (data: string, mimeType: string) => parts.push({ type: "image", image: { data, mimeType } });
  for (const part of result.content ?? []) {
    if (part.type === "text") say(part.text);
    else if (part.type === "image") show(part.data, part.mimeType);
    else if (part.type === "audio") media.audio.push({ data: part.data, mimeType: part.mimeType });
    else if (part.type === "resource_link") say(`[${part.name}](${part.uri})`);
    else if ("text" in part.resource) say(part.resource.text);
    else {
      const { blob: data, mimeType = "", uri } = part.resource;
      const kind = mimeType.split("/", 1)[0];
      if (kind === "image") show(data, mimeType);
      else if (kind === "video" || kind === "audio") media[kind].push({ data, mimeType });
      else say(`[resource ${uri}]`);
    }
  }
  if (parts.length === 0 && result.structuredContent) say(JSON.stringify(result.structuredContent));
  const found = Object.entries(media).filter(([, list]) => list.length > 0);
  return { ...describeParts(parts), ...Object.fromEntries(found) };
}
