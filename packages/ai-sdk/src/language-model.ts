import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3GenerateResult,
  LanguageModelV3StreamPart,
  LanguageModelV3StreamResult,
} from "@ai-sdk/provider";
import type { ChatModel } from "@cria/rollout";
import { describeContent, describeFinish, describeMetadata, describeUsage, unknownUsage } from "./describe-answer.js";
import { readCallOptions } from "./read-call-options.js";
import { StreamParts } from "./stream-answer.js";
import { toApiError } from "./to-api-error.js";

/**
 * The policy as a language model of the AI SDK, versions 6 and 7. Data without a field in the AI SDK is in
 * `providerMetadata.cria` (`CriaMetadata`); options without one are in `providerOptions.cria` (`CriaCallOptions`).
 */
export function languageModel(chat: ChatModel): LanguageModelV3 {
  return {
    specificationVersion: "v3",
    provider: "cria",
    modelId: chat.name,
    supportedUrls: {},
    doGenerate: (options) => generate(chat, options),
    doStream: (options) => stream(chat, options),
  };
}

async function generate(chat: ChatModel, options: LanguageModelV3CallOptions): Promise<LanguageModelV3GenerateResult> {
  const { request, own, warnings } = readCallOptions(options);
  try {
    const answer = await chat.complete(request, { signal: options.abortSignal });
    return {
      content: describeContent(answer.message),
      finishReason: describeFinish(answer),
      usage: describeUsage(answer),
      providerMetadata: describeMetadata(answer, own),
      response: { id: answer.node, modelId: chat.name, timestamp: new Date() },
      warnings,
    };
  } catch (error) {
    throw toApiError(error, chat.name);
  }
}

/**
 * Starts a stream. The promise settles with the first piece of the answer, so that a call that fails before it rejects
 * here, as over HTTP.
 */
async function stream(chat: ChatModel, options: LanguageModelV3CallOptions): Promise<LanguageModelV3StreamResult> {
  const { request, own, warnings } = readCallOptions(options);
  const left = new AbortController();
  const signal = options.abortSignal ? AbortSignal.any([options.abortSignal, left.signal]) : left.signal;
  let controller!: ReadableStreamDefaultController<LanguageModelV3StreamPart>;
  const parts = new ReadableStream<LanguageModelV3StreamPart>({
    start: (given) => {
      controller = given;
    },
    cancel: () => left.abort(),
  });
  const enqueue = (part: LanguageModelV3StreamPart) => {
    if (!left.signal.aborted) controller.enqueue(part);
  };
  enqueue({ type: "stream-start", warnings });
  const told = new StreamParts(enqueue);
  const fail = (error: unknown) => {
    told.end();
    enqueue({ type: "error", error });
    enqueue({ type: "finish", finishReason: { unified: "error", raw: undefined }, usage: unknownUsage });
    controller.close();
  };
  await new Promise<void>((begin, refuse) => {
    let hasBegun = false;
    const onEvent = (event: Parameters<typeof told.add>[0]) => {
      hasBegun = true;
      told.add(event);
      begin();
    };
    chat.complete(request, { signal, onEvent }).then(
      (answer) => {
        told.end();
        enqueue({ type: "response-metadata", id: answer.node, modelId: chat.name, timestamp: new Date() });
        enqueue({
          type: "finish",
          finishReason: describeFinish(answer),
          usage: describeUsage(answer),
          providerMetadata: describeMetadata(answer, own),
        });
        if (!left.signal.aborted) controller.close();
        begin();
      },
      (error: unknown) => {
        const given = toApiError(error, chat.name);
        if (!hasBegun) refuse(given);
        else if (left.signal.aborted) return;
        // As over HTTP, an aborted stream breaks off, and a failed one has an error part.
        else if (options.abortSignal?.aborted) controller.error(given);
        else fail(given);
      },
    );
  });
  return { stream: parts };
}
