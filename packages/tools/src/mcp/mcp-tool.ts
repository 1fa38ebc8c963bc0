import type { ToolSchema } from "@cria/core";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { BaseTool, type ExecuteOptions, type ToolResponse, type ToolResult } from "../base-tool.js";
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
    if (result.isError) response.text = `error: ${response.text}`;
    return { response, reward: 0, metrics: { mcp_error: result.isError ? 1 : 0 } };
  }

  override async dispose(): Promise<void> {
    await this.connection.close();
  }
}

/** Texts are joined; media stay apart; what else a text model cannot see is named. */
function readResult(result: CallToolResult): ToolResponse {
  const text: string[] = [];
  const media: Record<"image" | "video" | "audio", unknown[]> = { image: [], video: [], audio: [] };
  for (const part of result.content ?? []) {
    if (part.type === "text") text.push(part.text);
    else if (part.type === "image" || part.type === "audio")
      media[part.type].push({ data: part.data, mimeType: part.mimeType });
    else if (part.type === "resource_link") text.push(`[${part.name}](${part.uri})`);
    else if ("text" in part.resource) text.push(part.resource.text);
    else {
      const kind = /^(image|video|audio)\//.exec(part.resource.mimeType ?? "")?.[1] as keyof typeof media | undefined;
      if (kind) media[kind].push({ data: part.resource.blob, mimeType: part.resource.mimeType });
      else text.push(`[resource ${part.resource.uri}]`);
    }
  }
  if (text.length === 0 && result.structuredContent) text.push(JSON.stringify(result.structuredContent));
  const found = Object.entries(media).filter(([, list]) => list.length > 0);
  return { text: text.join("\n"), ...Object.fromEntries(found) };
}
