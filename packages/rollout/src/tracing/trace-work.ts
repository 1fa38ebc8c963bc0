import { basename } from "node:path";
import { CriaError, type GenerateOptions, type GenerateResult, type GenerateStats } from "@cria/core";
import type { ParsedToolCall } from "@cria/tools";
import type { SpanAttributes, TraceScope, TraceSpan } from "./tracer.js";

// Names of spans and attributes follow OpenTelemetry's semantic conventions for generative AI, version 1.38. Message
// texts are no attributes: they may be private, and are in the dumps.

/** Value of `gen_ai.provider.name`. */
const PROVIDER = "cria";

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
  const attributes = { ...describeModel(model), ...describeSampling(options) };
  return traceWork(scope, "chat", model, attributes, work, (span, { stats, finishReason }) =>
    span.set({
      ...describeAnswers(model, [
        {
          finishReason,
          inputTokens: stats.prefillTokens + stats.reusedTokens,
          outputTokens: stats.decodeTokens,
          reusedTokens: stats.reusedTokens,
        },
      ]),
      ...describeTimes(stats),
    }),
  );
}

/** Attributes of every span that asks this model. */
export function describeModel(model: string): SpanAttributes {
  return { "gen_ai.provider.name": PROVIDER, "gen_ai.request.model": model };
}

/** Attributes for the sampling of an answer. */
export function describeSampling(
  options: Partial<Pick<GenerateOptions, "temperature" | "topP" | "topK" | "maxTokens" | "seed" | "stopStrings">>,
): SpanAttributes {
  return {
    "gen_ai.request.temperature": options.temperature,
    "gen_ai.request.top_p": options.topP,
    "gen_ai.request.top_k": options.topK,
    "gen_ai.request.max_tokens": options.maxTokens,
    "gen_ai.request.seed": options.seed,
    "gen_ai.request.stop_sequences": options.stopStrings,
  };
}

/** A span's attributes of an answer. */
export interface TracedAnswer {
  finishReason: string;
  /** All tokens that the model read. */
  inputTokens: number;
  outputTokens: number;
  /** Tokens that the KV cache had. */
  reusedTokens: number;
}

/** Attributes for the answers of one request; tokens are added up. */
export function describeAnswers(model: string, answers: readonly TracedAnswer[]): SpanAttributes {
  const sum = (read: (answer: TracedAnswer) => number) => answers.reduce((total, answer) => total + read(answer), 0);
  return {
    "gen_ai.response.model": model,
    "gen_ai.response.finish_reasons": answers.map(({ finishReason }) => finishReason),
    "gen_ai.usage.input_tokens": sum(({ inputTokens }) => inputTokens),
    "gen_ai.usage.output_tokens": sum(({ outputTokens }) => outputTokens),
    "cria.reused_tokens": sum(({ reusedTokens }) => reusedTokens),
  };
}

/** Milliseconds that an answer waited in the engine, was read for and was sampled. */
export type AnswerTimes = Pick<GenerateStats, "queueMs" | "prefillMs" | "decodeMs">;

/** Attributes for the time that an answer waited, was read for and was sampled. */
export function describeTimes({ queueMs, prefillMs, decodeMs }: AnswerTimes): SpanAttributes {
  return {
    "cria.queue_seconds": queueMs / 1000,
    "cria.prefill_seconds": prefillMs / 1000,
    "cria.decode_seconds": decodeMs / 1000,
  };
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
