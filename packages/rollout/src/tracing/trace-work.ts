import { basename } from "node:path";
import { CriaError, type GenerateOptions, type GenerateResult } from "@cria/core";
import type { ParsedToolCall } from "@cria/tools";
import type { SpanAttributes, TraceScope, TraceSpan } from "./tracer.js";

// Names of spans and attributes follow OpenTelemetry's semantic conventions for generative AI, version 1.38. Message
// texts are no attributes: they may be private, and are in the dumps.

/** Value of `gen_ai.provider.name`. */
export const PROVIDER = "cria";

/** @param path path of the model file. */
export function nameModel(path: string): string {
  return basename(path);
}

/** Samples a turn inside a span `chat`; without a scope, just samples. */
export function traceChat(
  scope: TraceScope | null | undefined,
  modelPath: string,
  options: GenerateOptions,
  work: () => Promise<GenerateResult>,
): Promise<GenerateResult> {
  if (!scope) return work();
  const model = nameModel(modelPath);
  const attributes: SpanAttributes = {
    "gen_ai.provider.name": PROVIDER,
    "gen_ai.request.model": model,
    "gen_ai.request.temperature": options.temperature,
    "gen_ai.request.top_p": options.topP,
    "gen_ai.request.top_k": options.topK,
    "gen_ai.request.max_tokens": options.maxTokens,
    "gen_ai.request.seed": options.seed,
    "gen_ai.request.stop_sequences": options.stopStrings,
  };
  return traceWork(scope, "chat", model, attributes, work, (span, { stats, finishReason }) =>
    span.set({
      "gen_ai.response.model": model,
      "gen_ai.response.finish_reasons": [finishReason],
      "gen_ai.usage.input_tokens": stats.prefillTokens + stats.reusedTokens,
      "gen_ai.usage.output_tokens": stats.decodeTokens,
      "cria.reused_tokens": stats.reusedTokens,
    }),
  );
}

/** Runs a tool call inside a span `execute_tool`; without a scope, just runs it. */
export function traceTool<Outcome extends { failure?: string; reward: number }>(
  scope: TraceScope | null | undefined,
  call: ParsedToolCall,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  if (!scope) return work();
  // The model may make up names of any length.
  const name = call.name === "" ? "unknown" : call.name.slice(0, 64);
  const attributes: SpanAttributes = {
    "gen_ai.tool.name": name,
    "gen_ai.tool.type": "function",
    "gen_ai.tool.call.id": call.id,
  };
  return traceWork(scope, "execute_tool", name, attributes, work, (span, { failure, reward }) => {
    if (failure) span.fail(failure);
    else if (reward !== 0) span.set({ "cria.reward": reward });
  });
}

async function traceWork<T>(
  { tracer, span: parent, conversation }: TraceScope,
  operation: string,
  subject: string,
  attributes: SpanAttributes,
  work: () => Promise<T>,
  describe: (span: TraceSpan, result: T) => void,
): Promise<T> {
  const common = { "gen_ai.operation.name": operation, "gen_ai.conversation.id": conversation };
  const span = tracer.start(`${operation} ${subject}`, { ...common, ...attributes }, parent);
  try {
    const result = await tracer.within(span, work);
    describe(span, result);
    return result;
  } catch (error) {
    failSpan(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** Marks a span with an untrusted error. Never throws. */
export function failSpan(span: TraceSpan, error: unknown): void {
  const isError = error instanceof Error;
  span.fail(
    error instanceof CriaError ? error.code : isError ? error.name : "_OTHER",
    isError ? error.message : undefined,
  );
}
