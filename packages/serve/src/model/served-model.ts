import type { ImageEncoder, TokenCandidate } from "@cria/core";
import type { ChatModel, ChatRequest, ChatSampling, ChatUsage } from "@cria/rollout";
import type { SpelledToken } from "../protocol/protocol.js";

/** A text, or tokens, for the model to go on from: no conversation, no template. */
export interface TextRequest {
  prompt: string | readonly number[];
  /** At least 1. */
  maxTokens: number;
  stop?: readonly string[];
  sampling: ChatSampling;
  /** How many of the likeliest tokens to tell beside each sampled one; default 0. */
  topLogprobs?: number;
  /** Which of several answers to the same prompt; each draws with a seed of its own. */
  sibling: number;
}

export interface TextAnswer {
  /** Without the stop token or stop text. */
  text: string;
  finishReason: "stop" | "length";
  promptTokenIds: Int32Array;
  /** As sampled, the stop token included. */
  tokenIds: Int32Array;
  /** One for each of `tokenIds`. */
  logprobs: Float32Array;
  /** Where they were asked for: the likeliest tokens, by falling logprob, for each of `tokenIds`. */
  topLogprobs?: TokenCandidate[][];
  usage: ChatUsage;
  sibling: number;
}

export interface TextOptions {
  signal?: AbortSignal;
  onText?: (text: string) => void;
}

/** A conversation's record that clients reach by its id. */
export interface ServedSession extends ChatModel {
  readonly id: string;
  /**
   * @param node of the answer that it is for; without one it is for the whole session.
   * @throws DataError "chat/bad-request" when there is no such node.
   */
  reward(value: number, node?: string): void;
  /** The record so far, as plain JSON data. */
  describe(): object;
  /** Ends what runs in it and frees what it holds. */
  dispose(): void;
}

/** What the endpoint needs of a model. `serveEngine` makes one of an engine. */
export interface ServedModel {
  /** For clients. */
  readonly name: string;
  /** Names model, adapter, kernel and determinism: equal fingerprints and seeds give equal answers. */
  readonly fingerprint: string;
  /** Updates that the policy has seen. */
  readonly policyVersion: number;
  /** Most tokens of a conversation. */
  readonly contextSize: number;
  /** Absent: it reads text alone. */
  readonly images?: ImageEncoder;
  /** Conversations that are computed at once. */
  readonly maxSequences: number;
  /** @param seed of the session: its calls draw from it. */
  openSession(options: { id: string; seed: number }): ServedSession;
  /**
   * A session for conversations that have nothing to do with each other.
   * @param mostTokens that their records hold; what was idle for longest is forgotten.
   */
  openPool(options: { seed: number; mostTokens: number }): ServedSession;
  /** Tokens of a conversation as the model would be given it. @throws TokenizerError when its template refuses it. */
  countTokens(request: ChatRequest): Promise<number>;
  /** @throws EngineError, DataError "chat/context-length" where no room is left. */
  complete(request: TextRequest, options?: TextOptions): Promise<TextAnswer>;
  spell(tokenIds: ArrayLike<number>): SpelledToken[];
  /** Sequences that exist in the engine now, and requests in flight there; null where that is not known. */
  countInUse(): { sequences: number; requests: number } | null;
}
