import { type BaseTool, findArgumentError, type ParsedToolCall, type ToolResult } from "@cria/tools";
import { DeadlineExceeded, describeError, runWithDeadline } from "../run-with-deadline.js";
import type { ToolFailure } from "./loop-counters.js";

export interface ToolOutcome {
  text: string;
  reward: number;
  /** As the tool named them. */
  metrics: Record<string, number>;
  /** The tool's reward was no number, and counts as 0. */
  hasBadReward?: boolean;
  failure?: ToolFailure;
}

/** One conversation's instance of a tool. `problem` says why it could not be created. */
export interface ToolInstance {
  id: string;
  problem?: string;
}

export interface RunToolOptions {
  tools: ReadonlyMap<string, BaseTool>;
  /** The tools that this conversation may call. */
  instances: ReadonlyMap<string, ToolInstance>;
  executeKwargs: (tool: string) => Record<string, unknown>;
  agentData: Record<string, unknown>;
  timeoutS: number;
  signal?: AbortSignal;
}

/** Runs one call. Whatever goes wrong becomes a text that the model can read; nothing is thrown. */
export async function runToolCall(call: ParsedToolCall, options: RunToolOptions): Promise<ToolOutcome> {
  const fail = (failure: ToolFailure, text: string): ToolOutcome => ({ text, reward: 0, metrics: {}, failure });
  if (call.error) return fail("invalid_call", call.error);
  const tool = options.tools.get(call.name);
  const instance = options.instances.get(call.name);
  if (!tool || !instance) return fail("unknown_tool", `error: unknown tool "${call.name}"`);
  if (instance.problem !== undefined) {
    return fail("unavailable", `error: ${call.name} is not available (${instance.problem})`);
  }
  try {
    const problem = findArgumentError(tool.schema, call.arguments);
    if (problem) return fail("invalid_arguments", `error: invalid arguments (${problem})`);
    const result = await runWithDeadline(options.timeoutS, options.signal, (signal) =>
      tool.execute(instance.id, call.arguments, {
        agentData: options.agentData,
        ...options.executeKwargs(call.name),
        signal,
      }),
    );
    return readResult(result) ?? fail("bad_response", `error: ${call.name} gave no text`);
  } catch (error) {
    if (error instanceof DeadlineExceeded)
      return fail("timeout", `error: ${call.name} did not answer within ${options.timeoutS} s`);
    return fail("exception", `error: ${call.name} failed (${describeError(error)})`);
  }
}

/** Null when it is not what a tool may return. */
function readResult(result: Partial<ToolResult> | null | undefined): ToolOutcome | null {
  const text = result?.response?.text ?? "";
  if (!result?.response || typeof text !== "string") return null;
  const metrics: Record<string, number> = {};
  for (const [name, value] of Object.entries(result.metrics ?? {})) {
    if (typeof value === "number" && Number.isFinite(value)) metrics[name] = value;
  }
  const reward = result.reward ?? 0;
  if (typeof reward === "number" && Number.isFinite(reward)) return { text, reward, metrics };
  return { text, reward: 0, metrics, hasBadReward: true };
}
