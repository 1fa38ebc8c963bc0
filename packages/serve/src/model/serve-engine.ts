import { DataError, hashSeed } from "@cria/core";
import { ChatPool, type ChatRequest, type ChatSampling, ChatSession, type ChatSessionOptions } from "@cria/rollout";
import { ownText } from "@cria/tokenizer-delta/internal";
import type { SpelledToken } from "../protocol/protocol.js";
import { describeGraph } from "./describe-graph.js";
import type { ServedModel, ServedSession, TextAnswer, TextOptions, TextRequest } from "./served-model.js";

export interface ServeEngineOptions
  extends Pick<
    ChatSessionOptions,
    "engine" | "tokenizer" | "format" | "sampling" | "enforceSampling" | "limits" | "images" | "stop" | "onWarning"
  > {
  /** The name that clients see. */
  name: string;
  /** Identifies everything that answers depend on; a function where it changes, as with a swapped adapter. */
  fingerprint: string | (() => string);
  /** Updates that the policy has seen; default 0. */
  policyVersion?: () => number;
  /** Bytes of a token, where the vocabulary's file is available; default: the bytes of its text. */
  bytesOf?: (tokenId: number) => Uint8Array | null;
  /** Sequences and requests in the engine; default: unknown. */
  countInUse?: ServedModel["countInUse"];
}

/** The character that stands for bytes of an incomplete character. */
const PARTIAL = "\ufffd";

/** Serves an engine of this process. */
export function serveEngine(options: ServeEngineOptions): ServedModel {
  const { engine, tokenizer, name, fingerprint, policyVersion = () => 0, countInUse = () => null } = options;
  const spelled = new Map<number, SpelledToken>();
  const spellOne = (id: number): SpelledToken => {
    const text = engine.detokenize([id]);
    const bytes = options.bytesOf?.(id) ?? (text.includes(PARTIAL) ? null : new TextEncoder().encode(text));
    return { text, bytes };
  };
  return {
    name,
    contextSize: engine.info.contextSize,
    images: engine.images,
    maxSequences: engine.info.maxSequences,
    get fingerprint() {
      return typeof fingerprint === "string" ? fingerprint : fingerprint();
    },
    get policyVersion() {
      return policyVersion();
    },
    countInUse,
    openSession: ({ id, seed }) => openSession(options, id, seed),
    openPool: ({ seed, mostTokens }) => openPool(options, seed, mostTokens),
    countTokens: async ({ messages, tools }: ChatRequest) =>
      (await tokenizer.encodePromptAside(messages, tools)).length,
    complete: (request, given) => completeText(options, request, given),
    spell: (tokenIds) =>
      Array.from(tokenIds, (id) => {
        const known = spelled.get(id) ?? spellOne(id);
        spelled.set(id, known);
        return known;
      }),
  };
}

function openSession(options: ServeEngineOptions, id: string, seed: number): ServedSession {
  const session = new ChatSession({ ...options, id, seed });
  return {
    id,
    name: options.name,
    complete: (request, given) => session.complete(request, given),
    reward: (value, node) => session.reward(value, node),
    describe: () => describeGraph(session),
    dispose: () => session.dispose(),
  };
}

function openPool(options: ServeEngineOptions, seed: number, mostTokens: number): ServedSession {
  const pool = new ChatPool({ ...options, seed, mostTokens });
  return {
    id: "anonymous",
    name: options.name,
    complete: (request, given) => pool.complete(request, given),
    reward: () => {
      throw new DataError("cannot be given", {
        code: "chat/bad-request",
        subject: "reward",
        expected: "a session to reward",
        received: "none",
      });
    },
    describe: () => ({ conversations: pool.size }),
    dispose: () => pool.dispose(),
  };
}

/** Continues a text as it is: without a template, and with the control tokens that it spells. */
async function completeText(
  { engine, tokenizer, sampling = {}, enforceSampling = false, stop = [] }: ServeEngineOptions,
  request: TextRequest,
  { signal, onText }: TextOptions = {},
): Promise<TextAnswer> {
  signal?.throwIfAborted();
  const promptTokenIds =
    typeof request.prompt === "string"
      ? tokenizer.addBos(await tokenizer.tokenizeAside(ownText(request.prompt)))
      : Int32Array.from(request.prompt);
  const { vocabSize } = engine.info;
  const unknown = promptTokenIds.findIndex((id) => id >= vocabSize);
  // An id beyond the vocabulary could be another client's image.
  if (unknown >= 0)
    throw refusePrompt(
      "chat/bad-request",
      "is not in the vocabulary",
      `ids below ${vocabSize}`,
      `${promptTokenIds[unknown]}`,
    );
  const room = engine.info.contextSize - promptTokenIds.length;
  if (promptTokenIds.length === 0) throw refusePrompt("chat/bad-request", "is empty", "at least one token", "none");
  if (room < 1)
    throw refusePrompt(
      "chat/context-length",
      "is too long",
      `fewer than ${engine.info.contextSize} tokens`,
      `${promptTokenIds.length} tokens`,
    );
  const chosen = enforceSampling ? sampling : { ...sampling, ...request.sampling };
  const sequence = engine.createSequence();
  try {
    const result = await sequence.generate(promptTokenIds, {
      ...chosen,
      seed: chooseSeed(chosen, request),
      maxTokens: Math.min(room, request.maxTokens),
      stopStrings: [...stop, ...(request.stop ?? [])],
      ...(request.topLogprobs ? { topLogprobs: request.topLogprobs } : {}),
      signal,
      onText,
    });
    if (result.finishReason === "aborted") throw signal?.reason ?? new Error("aborted");
    return {
      text: result.text,
      finishReason: result.finishReason,
      promptTokenIds,
      tokenIds: result.tokenIds,
      logprobs: result.logprobs,
      ...(result.topLogprobs ? { topLogprobs: result.topLogprobs } : {}),
      usage: {
        promptTokens: promptTokenIds.length,
        completionTokens: result.tokenIds.length,
        reasoningTokens: 0,
        reusedTokens: Math.max(0, promptTokenIds.length - result.stats.prefillTokens),
      },
      times: {
        queueMs: result.stats.queueMs,
        prefillMs: result.stats.prefillMs,
        decodeMs: result.stats.decodeMs,
      },
      sibling: request.sibling,
    };
  } finally {
    sequence.dispose();
  }
}

/** Without a seed, each request draws a random one, as clients expect of unrecorded requests. */
function chooseSeed({ seed }: ChatSampling, { sibling }: TextRequest): number | undefined {
  return seed === undefined || sibling === 0 ? seed : hashSeed(seed, sibling);
}

function refusePrompt(code: string, summary: string, expected: string, received: string): DataError {
  return new DataError(summary, { code, subject: "prompt", expected, received });
}
