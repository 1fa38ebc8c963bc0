import { type BaseTool, findArgumentError, type ParsedToolCall, type ToolResult } from "@cria/tools";

/** Why a call gave no ordinary answer; each is a metric. */
export type ToolFailure = "invalid_call" | "unknown_tool" | "invalid_arguments" | "timeout" | "exception";

export interface ToolOutcome {
  text: string;
  reward: number;
  metrics: Record<string, number>;
  failure?: ToolFailure;
}

export interface RunToolOptions {
  tools: ReadonlyMap<string, BaseTool>;
  instanceIds: ReadonlyMap<string, string>;
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
  const instanceId = options.instanceIds.get(call.name);
  if (!tool || instanceId === undefined) return fail("unknown_tool", `error: unknown tool "${call.name}"`);
  const problem = findArgumentError(tool.schema, call.arguments);
  if (problem) return fail("invalid_arguments", `error: invalid arguments (${problem})`);
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), options.timeoutS * 1000);
  try {
    const signal = options.signal ? AbortSignal.any([options.signal, limit.signal]) : limit.signal;
    const running = tool.execute(instanceId, call.arguments, {
      agentData: options.agentData,
      ...options.executeKwargs(call.name),
      signal,
    });
    const result = await Promise.race([running, rejectOnAbort(signal)]);
    return {
      text: result.response?.text ?? "",
      reward: result.reward ?? 0,
      metrics: result.metrics ?? {},
    } satisfies ToolOutcome & Partial<ToolResult>;
  } catch (error) {
    if (limit.signal.aborted) return fail("timeout", `error: ${call.name} did not answer within ${options.timeoutS} s`);
    return fail("exception", `error: ${call.name} failed (${error instanceof Error ? error.message : String(error)})`);
  } finally {
    clearTimeout(timer);
  }
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = () => reject(new Error("aborted"));
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}
