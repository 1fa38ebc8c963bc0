import { randomUUID } from "node:crypto";
import { type JsonSchema, ToolError } from "@cria/core";
import { toContentPart } from "@cria/core/internal";
import { BaseTool, type ExecuteOptions, type ToolResponse, type ToolResult } from "./base-tool.js";
import { describeParts } from "./describe-parts.js";
import { type ReadSchema, readInputSchema, refuseArguments } from "./input-schema.js";
import { defineToolSchema } from "./schema.js";
import { writeOutput } from "./write-output.js";

/**
 * A tool of the AI SDK (`tool({ description, inputSchema, execute })`), with the fields that Cria uses. The type is
 * structural, so that the `ai` package is not a dependency; the tests run against version 6.
 */
export interface AiSdkTool {
  description?: string;
  inputSchema: unknown;
  // biome-ignore lint/suspicious/noExplicitAny: a tool's own types; the schema is what checks them.
  execute?: (input: any, options: any) => unknown;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  toModelOutput?: (options: any) => unknown;
}

export function isAiSdkTool(value: unknown): value is AiSdkTool {
  return typeof value === "object" && value !== null && "inputSchema" in value && !(value instanceof BaseTool);
}

/**
 * The AI SDK tools in a value, by the names that the model calls. The value is one tool (its name is `name`), a record
 * of tools, or an agent that has `tools`. Other entries of a record are ignored; null when the value holds no tool.
 */
export function findAiSdkTools(name: string, value: unknown): Record<string, AiSdkTool> | null {
  if (isAiSdkTool(value)) return { [name]: value };
  const record = isRecord(value) && isRecord(value["tools"]) ? value["tools"] : value;
  if (!isRecord(record) || record instanceof BaseTool) return null;
  const tools = Object.entries(record).filter((entry): entry is [string, AiSdkTool] => isAiSdkTool(entry[1]));
  return tools.length > 0 ? Object.fromEntries(tools) : null;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/**
 * Makes an AI SDK tool a tool of an agent. It keeps no state for a trajectory; `agentData` and the row's
 * `execute_kwargs` reach it as `experimental_context`.
 * @throws ToolError when it cannot run here or its schema cannot be read.
 */
export async function fromAiSdkTool(name: string, tool: AiSdkTool): Promise<BaseTool> {
  if (typeof tool.execute !== "function") {
    throw new ToolError("has no execute function", {
      code: "tool/not-executable",
      subject: `AI SDK tool "${name}"`,
      remedy: "give it one: a rollout runs its tools' calls in this process",
    });
  }
  const input = readInputSchema(`AI SDK tool "${name}"`, tool.inputSchema);
  return new AiSdkToolAdapter(name, tool, input, await input.jsonSchema);
}

/** All tools of a tool set, `{ weather: tool(...), ... }`, by name. */
export async function fromAiSdkTools(tools: Readonly<Record<string, AiSdkTool>>): Promise<Map<string, BaseTool>> {
  const made = await Promise.all(Object.entries(tools).map(([name, tool]) => fromAiSdkTool(name, tool)));
  return new Map(made.map((tool) => [tool.name, tool]));
}

class AiSdkToolAdapter extends BaseTool {
  constructor(
    name: string,
    private readonly tool: AiSdkTool,
    private readonly input: ReadSchema,
    parameters: JsonSchema,
  ) {
    super(defineToolSchema(name, tool.description ?? "", parameters));
  }

  override get origin() {
    return "ai-sdk" as const;
  }

  async execute(
    _instanceId: string,
    parameters: Record<string, unknown>,
    { signal, ...context }: ExecuteOptions = {},
  ): Promise<ToolResult> {
    const checked = await this.input.validate?.(parameters);
    if (checked?.success === false) return refuseArguments(checked.error.message);
    const input = checked ? checked.value : parameters;
    const toolCallId = randomUUID();
    let output = await this.tool.execute!(input, {
      toolCallId,
      messages: [],
      abortSignal: signal,
      experimental_context: context,
    });
    // A generator reports progress; its last value is the answer.
    if (isAsyncIterable(output)) {
      const parts = output;
      output = undefined;
      for await (const part of parts) output = part;
    }
    const model = await this.tool.toModelOutput?.({ toolCallId, input, output });
    return {
      response: model === undefined ? { text: toText(output, this.name) } : readModelOutput(model, this.name),
      reward: 0,
      metrics: {},
    };
  }
}

/** Reads the AI SDK's `ToolResultOutput`: joins its texts, keeps its images, and keeps other media apart. */
function readModelOutput(model: unknown, tool: string): ToolResponse {
  const { type, value, reason } = model as { type: string; value?: unknown; reason?: string };
  if (type === "execution-denied") return { text: `error: denied${reason ? ` (${reason})` : ""}` };
  if (type === "error-text" || type === "error-json") return { text: `error: ${toText(value, tool)}` };
  if (type !== "content" || !Array.isArray(value)) return { text: toText(value, tool) };
  const given = value as { type: string; mediaType?: string }[];
  const parts = given.map((part) => toContentPart(part)).filter((part) => part !== null);
  const media = (["video", "audio"] as const).map((kind) => {
    const isKind = (part: { type: string; mediaType?: string }) =>
      part.type.startsWith(kind) || part.mediaType?.startsWith(`${kind}/`);
    return [kind, given.filter(isKind)] as const;
  });
  return { ...describeParts(parts), ...Object.fromEntries(media.filter(([, found]) => found.length > 0)) };
}

/** Undefined becomes an empty text: some tools only have an effect. */
function toText(value: unknown, tool: string): string {
  return value === undefined ? "" : writeOutput(value, tool);
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}
