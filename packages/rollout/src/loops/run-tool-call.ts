import { isUsableNumber } from "@cria/episodes/internal";
import { type BaseTool, findArgumentError, type ParsedToolCall, type ToolResult } from "@cria/tools";
import { copyData } from "../copy-data.js";
import { describeError, isDeadlineExceeded, runWithDeadline } from "../run-with-deadline.js";
import { failCall, type ToolOutcome } from "./tool-outcome.js";
import { readResponse, UnreadableImage } from "./tool-response.js";

/** One conversation's instance of a tool. */
export interface ToolInstance {
  id: string;
  /** Error of its creation, if that failed. */
  problem?: string;
  /** Settles when calls that timed out have ended; never rejects. */
  late?: Promise<unknown>;
}

export interface RunToolOptions {
  tools: ReadonlyMap<string, BaseTool>;
  /** The tools that this conversation may call. */
  instances: ReadonlyMap<string, ToolInstance>;
  executeKwargs: (tool: string) => Record<string, unknown>;
  agentData: Record<string, unknown>;
  timeoutS: number;
  /** True if the policy takes images. */
  seesImages: boolean;
  signal?: AbortSignal;
}

/** Runs one call. Any failure becomes a text that the model can read; nothing is thrown. */
export async function runToolCall(call: ParsedToolCall, options: RunToolOptions): Promise<ToolOutcome> {
  if (call.error) return failCall("invalid_call", call.error);
  const tool = options.tools.get(call.name);
  const instance = options.instances.get(call.name);
  if (!tool || !instance)
    return failCall("unknown_tool", describeUnknownTool(call.name, [...options.instances.keys()]));
  if (instance.problem !== undefined) {
    return failCall("unavailable", `error: ${call.name} is not available (${instance.problem})`);
  }
  let running: Promise<ToolResult> | undefined;
  const isBusy = instance.late !== undefined;
  try {
    const problem = findArgumentError(tool.schema, call.arguments);
    if (problem) return failCall("invalid_arguments", `error: invalid arguments (${problem})`);
    const result = await runWithDeadline(options.timeoutS, options.signal, async (signal, pauseDeadline) => {
      // A call that timed out may still use the instance.
      await instance.late;
      signal.throwIfAborted();
      running = tool.execute(instance.id, copyData(call.arguments), {
        agentData: options.agentData,
        ...options.executeKwargs(call.name),
        signal,
        pauseDeadline,
      });
      return running;
    });
    return readResult(result, options.seesImages) ?? failCall("bad_response", `error: ${call.name} gave no text`);
  } catch (error) {
    if (error instanceof UnreadableImage) return failCall("bad_image", `error: ${call.name} gave ${error.message}`);
    if (running) instance.late = Promise.allSettled([instance.late, running]);
    if (isDeadlineExceeded(error)) {
      if (isBusy && !running) return failCall("timeout", `error: ${call.name} is still busy with an earlier call`);
      return failCall("timeout", `error: ${call.name} did not answer within ${options.timeoutS} s`);
    }
    return failCall("exception", `error: ${call.name} failed (${describeError(error)})`);
  }
}

/**
 * Maximum number of characters of the called name, and of the list of tools, in an error: they must not crowd out
 * the rest.
 */
const longestName = 64;
const longestList = 500;

/** Error text for the model. It lists the tools, because small models call tools of other prompts. */
export function describeUnknownTool(called: string, known: readonly string[]): string {
  const name = called.length > longestName ? `${called.slice(0, longestName)}...` : called;
  if (known.length === 0) return `error: unknown tool "${name}"; there are no tools`;
  const shown: string[] = [];
  let length = 0;
  for (const each of known) {
    length += each.length + 2;
    if (length > longestList && shown.length > 0) break;
    shown.push(each);
  }
  const more = known.length - shown.length;
  return `error: unknown tool "${name}"; the tools are: ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Null for an invalid result. @throws UnreadableImage */
function readResult(result: Partial<ToolResult> | null | undefined, seesImages: boolean): ToolOutcome | null {
  const read = readResponse(result?.response, seesImages);
  if (!result || !read) return null;
  const metrics: Record<string, number> = {};
  for (const [name, value] of Object.entries(result.metrics ?? {})) {
    if (isUsableNumber(value)) metrics[name] = value;
  }
  const { state } = result;
  const outcome = { ...read, reward: 0, metrics, ...(typeof state === "string" ? { state } : {}) };
  const reward = result.reward ?? 0;
  if (isUsableNumber(reward)) return { ...outcome, reward };
  return { ...outcome, hasBadReward: true };
}
