import type { GenerateOptions, ModelInfo, TokenCandidate } from "../policy-engine.js";
import type { FakeImageOptions, FakeImages } from "./fake-images.js";
import type { FakeTokenizer } from "./fake-tokenizer.js";

/** What the script of a fake model sees when it has to speak. */
export interface FakeContext {
  /** Everything so far, special tokens written out. */
  text: string;
  tokenIds: Int32Array;
  /** Turns that this sequence (and what it was forked from) has sampled before. */
  turn: number;
  options: GenerateOptions;
}

/** `end: false` leaves the end-of-turn token out: the turn then ends by length. */
export type FakeReply = string | { text: string; end?: boolean };

export interface FakeEngineOptions {
  /** The script: what the model says next. */
  reply: (context: FakeContext) => FakeReply | Promise<FakeReply>;
  /** Milliseconds that a turn takes; default 0 (still asynchronous). */
  latencyMs?: number | ((context: FakeContext) => number);
  prefillLatencyMs?: number;
  /** Default 4096. */
  contextSize?: number;
  /** Default 16. */
  maxSequences?: number;
  /** Default: ChatML with Hermes tools. */
  chatTemplate?: string | null;
  /** Special tokens beside ChatML's. */
  specialTokens?: readonly string[];
  /** Tokens that end a turn or the text, the one that replies end with first; default `<|im_end|>` and `<|endoftext|>`. */
  endTokens?: readonly string[];
  /** With the adapter off logprobs are so many times as large. Default 1: adapter and reference are the same. */
  referenceScale?: number;
  /** Whether it takes images, with two more special tokens around them (`fakeImageMarks`). Default: text alone. */
  images?: boolean | FakeImageOptions;
}

/** What a sequence of the fake engine uses of it. */
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
