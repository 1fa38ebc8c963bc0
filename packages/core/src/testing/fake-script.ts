import type { GenerateOptions, ModelInfo, TokenCandidate } from "../policy-engine.js";
import type { FakeImageOptions, FakeImages } from "./fake-images.js";
import type { FakeTokenizer } from "./fake-tokenizer.js";

/** State that a fake model's script receives for its reply. */
export interface FakeContext {
  /** The whole text so far, including special tokens. */
  text: string;
  tokenIds: Int32Array;
  /** Number of turns that this sequence (and the one it was forked from) has sampled before. */
  turn: number;
  options: GenerateOptions;
}

/** `end: false` leaves the end-of-turn token out: the turn then ends by length. */
export type FakeReply = string | { text: string; end?: boolean };

export interface FakeEngineOptions {
  /** The script: returns the model's next reply. */
  reply: (context: FakeContext) => FakeReply | Promise<FakeReply>;
  /** Duration of a turn in milliseconds; default 0 (still asynchronous). */
  latencyMs?: number | ((context: FakeContext) => number);
  prefillLatencyMs?: number;
  /** Default 4096. */
  contextSize?: number;
  /** Default 16. */
  maxSequences?: number;
  /** Default: ChatML with Hermes tools. */
  chatTemplate?: string | null;
  /** Special tokens in addition to ChatML's. */
  specialTokens?: readonly string[];
  /** Tokens that end a turn or the text; replies end with the first one. Default `<|im_end|>` and `<|endoftext|>`. */
  endTokens?: readonly string[];
  /** Factor for logprobs with the adapter off. Default 1: adapter and reference are equal. */
  referenceScale?: number;
  /** Take images, with two more special tokens around them (`fakeImageMarks`). Default: only text. */
  images?: boolean | FakeImageOptions;
}

/** The parts of the fake engine that its sequences use. */
export interface FakeHost {
  readonly tokenizer: FakeTokenizer;
  readonly info: ModelInfo;
  readonly images?: FakeImages;
  readonly options: FakeEngineOptions;
  readonly counts: Record<"created" | "disposed" | "requests" | "inFlight" | "mostInFlight" | "prefillTokens", number>;
  logprobAt(tokenIds: ArrayLike<number>, at: number): number;
  listLikeliest(tokenIds: readonly number[], count: number): TokenCandidate[];
  latencyOf(context: FakeContext): number;
}
