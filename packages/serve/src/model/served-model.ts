import type { ImageEncoder, TokenCandidate } from "@cria/core";
import type { AnswerTimes, ChatModel, ChatRequest, ChatSampling, ChatUsage, RoleRewards } from "@cria/rollout";
import type { SpelledToken } from "../protocol/protocol.js";

/** A text, or tokens, for the model to continue, without a conversation or template. */
export interface TextRequest {
  prompt: string | readonly number[];
  /** Maximum number of tokens to sample, at least 1. */
  maxTokens: number;
  stop?: readonly string[];
  sampling: ChatSampling;
  /** Number of likeliest tokens to report with each sampled one; default 0. */
  topLogprobs?: number;
  /** Index among several answers to the same prompt; each has another seed. */
  sibling: number;
}

export interface TextAnswer {
  /** The text without the stop token or stop string. */
  text: string;
  finishReason: "stop" | "length";
  promptTokenIds: Int32Array;
  /** The sampled tokens, with the stop token. */
  tokenIds: Int32Array;
  /** One for each of `tokenIds`. */
  logprobs: Float32Array;
  /** The likeliest tokens, by falling logprob, for each of `tokenIds`; only if requested. */
  topLogprobs?: TokenCandidate[][];
  usage: ChatUsage;
  /** Absent: nobody measured them. */
  times?: AnswerTimes;
  sibling: number;
}

export interface TextOptions {
  signal?: AbortSignal;
  onText?: (text: string) => void;
}

/** A conversation's record that clients address by its id. */
export interface ServedSession extends ChatModel {
  readonly id: string;
  /**
   * @param value a number, or one for each role that the model played.
   * @param node of the rewarded answer; without one a number is for the whole session.
   * @throws DataError "chat/bad-request" for an unknown node.
   */
  reward(value: number | RoleRewards, node?: string): void;
  /** The record so far, as plain JSON data. */
  describe(): object;
  /** Aborts its running calls and frees its resources. */
  dispose(): void;
}

/** The interface between the endpoint and a model. `serveEngine` makes one from an engine. */
export interface ServedModel {
  /** The name that clients see. */
  readonly name: string;
  /** Names model, adapter, kernel and determinism: equal fingerprints and seeds give equal answers. */
  readonly fingerprint: string;
  /** Updates that the policy has seen. */
  readonly policyVersion: number;
  /** Most tokens of a conversation. */
  readonly contextSize: number;
  /** Absent: the model reads only text. */
  readonly images?: ImageEncoder;
  /** Conversations that the model computes at once. */
  readonly maxSequences: number;
  /** Opens a session. Its calls derive their seeds from `seed`. */
  openSession(options: { id: string; seed: number }): ServedSession;
  /**
   * Opens a session for unrelated conversations. Its records keep at most `mostTokens`: the conversation that was idle
   * longest is forgotten first.
   */
  openPool(options: { seed: number; mostTokens: number }): ServedSession;
  /**
   * Tokens of a conversation as the model's prompt.
   * @throws TokenizerError when the template refuses it.
   */
  countTokens(request: ChatRequest): Promise<number>;
  /** @throws EngineError, DataError "chat/context-length" without room for an answer. */
  complete(request: TextRequest, options?: TextOptions): Promise<TextAnswer>;
  spell(tokenIds: ArrayLike<number>): SpelledToken[];
  /** Sequences and requests in the engine now; null where that is unknown. */
  countInUse(): { sequences: number; requests: number } | null;
}
