/**
 * The engine as the rest of Cria sees it: generation, scoring and training over one copy of the weights.
 * `@cria/engine` implements it on llama.cpp; `@cria/core/testing` has a scripted one.
 * Logprobs are natural logarithms; `logprobs[t]` scores `tokenIds[t]` given everything before it.
 */

import type { ImageEncoder } from "./images/image-encoder.js";
import type { LoadedImage } from "./images/image-source.js";

export interface ModelInfo {
  path: string;
  architecture: string;
  name: string;
  parameterCount: number;
  vocabSize: number;
  embeddingSize: number;
  layerCount: number;
  headCount: number;
  kvHeadCount: number;
  headSize: number;
  /** Tokens that one sequence can hold. */
  contextSize: number;
  /** Context length that the model was trained with. */
  trainingContextSize: number;
  /** Sequences resident in the KV cache at once; more may exist, idle ones then wait outside it. */
  maxSequences: number;
  /** What computes: "cpu" or "cuda". */
  device: string;
  /** Whether decoding uses llama.cpp's flash attention. */
  flashAttention: boolean;
  threads: number;
  /**
   * Which instruction set the engine's own products on the CPU use: "portable", "avx2" or "avx512", the CPU's best or what
   * the environment variable CRIA_CPU_KERNEL names. With `ggmlBuild` it decides the last bits of every result on a CPU.
   */
  cpuKernel: string;
  /** Which build of ggml computes the rest: "haswell" of libggml-cpu-haswell.so; "default" where there is one alone. */
  ggmlBuild: string;
  bosToken: number | null;
  eosToken: number | null;
  /** Every token that ends a turn or the text. */
  endOfGenerationTokens: number[];
  /** Whether the model wants the BOS token in front of a whole prompt. */
  addBos: boolean;
  trainable: "none" | "lora" | "full";
  /** Trainable parameters, in elements. */
  trainableParameterCount: number;
  /** How many weight tensors have which type, for example `{ f32: 40, q8_0: 28 }`. */
  weightTypes: Record<string, number>;
}

/** A token whose text is cut out of a text before the rest is tokenized. */
export interface SpecialToken {
  id: number;
  text: string;
  /**
   * Whether the GGUF marks it as a control token (or as the unknown token): it then steers the model, and text is read
   * as that token only where special tokens are asked for. Others are the vocabulary's "user-defined" words.
   */
  control: boolean;
  /** Whether it takes the whitespace before it, or after it, away with it. */
  stripLeft: boolean;
  stripRight: boolean;
}

export interface SamplingOptions {
  /** 0 means greedy. Logprobs are those of the softmax at this temperature (greedy: at 1). Default 1. */
  temperature?: number;
  /** Keep the smallest set of tokens whose probability reaches this; (0, 1], default 1 (off). */
  topP?: number;
  /** Keep the k likeliest tokens; 0 (default) means all. */
  topK?: number;
  /** Drop tokens less likely than `minP` times the likeliest; [0, 1), default 0. */
  minP?: number;
  /** 32-bit seed. The t-th sampled token of a request depends on the seed, t and the logits alone. */
  seed?: number;
}

export interface GenerateOptions extends SamplingOptions {
  /** Most tokens to sample, at least 1. */
  maxTokens: number;
  /** Tokens that end the turn (kept in `tokenIds`). Default: `info.endOfGenerationTokens`. */
  stopTokens?: readonly number[];
  /** Texts that end the turn (kept in `tokenIds`, cut from `text`). */
  stopStrings?: readonly string[];
  /**
   * A grammar in llama.cpp's notation (GBNF) that the sampled text must match from its rule `root`. It comes before `topK`,
   * `topP` and `minP`: they choose among the tokens that it allows. A token is allowed when the text so far and its own can
   * still become a match, also where it ends inside a character; special tokens count as their text. Tokens that end the
   * generation are allowed exactly where the text may end, and always end it. At most 256 KiB.
   */
  grammar?: string;
  /** How many of the likeliest tokens to tell beside each sampled one; 0 (default) to 64. Changes nothing that is sampled. */
  topLogprobs?: number;
  signal?: AbortSignal;
  /** Called with each newly sampled stretch of text, for streaming. */
  onText?: (text: string) => void;
}

export interface GenerateStats {
  /** Tokens evaluated before sampling: those of the sequence and the delta that were not reused. */
  prefillTokens: number;
  /** Tokens whose KV was there already: the sequence's own, or of another one that begins alike. */
  reusedTokens: number;
  /** Tokens sampled. */
  decodeTokens: number;
  queueMs: number;
  prefillMs: number;
  decodeMs: number;
}

/** A token that could have been sampled. */
export interface TokenCandidate {
  id: number;
  /** As the sampled token's: over the full vocabulary (with a grammar: what it allows), at the sampling temperature. */
  logprob: number;
}

export interface GenerateResult {
  tokenIds: Int32Array;
  /** One for each of `tokenIds`: over the full vocabulary (with a grammar: what it allows), at the sampling temperature. */
  logprobs: Float32Array;
  /**
   * With a grammar, one for each of `tokenIds`: 1 where the grammar forbade tokens that have, all together, more than 1e-9
   * of the probability at the sampling temperature (greedy: 1). Where it is 0 the token is as if sampled freely.
   */
  constrained?: Uint8Array;
  /**
   * With `topLogprobs`, for each of `tokenIds` the likeliest tokens by falling logprob, ties by id: before `topK`, `topP` and
   * `minP` choose, and fewer where a grammar allows fewer.
   */
  topLogprobs?: TokenCandidate[][];
  finishReason: "stop" | "length" | "aborted";
  /** The one of `stopStrings` that ended the text; left out where none did. */
  stopString?: string;
  /** The sampled text without the stop token or stop string. */
  text: string;
  stats: GenerateStats;
}

/** One conversation's tokens, with its KV kept between turns. */
export interface PolicySequence {
  /** Tokens so far, sampled ones included. */
  readonly tokenCount: number;
  /**
   * Appends `deltaTokenIds` (may be empty after a fork with pending tokens) and samples the next turn.
   * @throws EngineError when the logits are not finite, the request does not fit, or memory runs out; for a wrong grammar
   * before anything is sampled, and where a grammar allows no token or is too ambiguous to be followed. The engine goes on.
   */
  generate(deltaTokenIds: ArrayLike<number>, options: GenerateOptions): Promise<GenerateResult>;
  /** A second sequence with the same tokens; what is evaluated already is shared, not evaluated again. */
  fork(): PolicySequence;
  /** Evaluates tokens without sampling, so that forks share them. */
  prefill(deltaTokenIds: ArrayLike<number>, options?: { signal?: AbortSignal }): Promise<void>;
  dispose(): void;
}

export interface ScoreSequence {
  tokenIds: ArrayLike<number>;
  /** Score tokens from here on; tokens before, and vectors of images, have logprob 0. At least 1 (the first token has no prefix). Default 1. */
  from?: number;
}

export interface ScoreOptions {
  /** Logits are divided by this. Default 1. */
  temperature?: number;
  /** false: score with the adapter off, that is, as the reference policy. Default true. */
  adapter?: boolean;
  /** Also return the entropy of each distribution. */
  entropy?: boolean;
  /** Also return the sum of the squared probabilities of each distribution. */
  sumPiSquared?: boolean;
  /**
   * Computes a micro-batch somewhere; `here` does so in this engine, one after the other. All are asked for at once. Default:
   * `here`.
   */
  compute?: (shard: ScoreShard, here: () => Promise<ShardScores>) => Promise<ShardScores>;
  signal?: AbortSignal;
}

/** A micro-batch of sequences that are scored. */
export interface ScoreShard extends MicroBatchShard {
  /** false: with the adapter off. */
  adapter: boolean;
  /** Whether the sums of the squared probabilities are wanted. */
  squares: boolean;
}

/** What scores are made of: a value for each of the shard's targets. */
export interface ShardScores {
  logprobs: Float32Array;
  /** In nats. */
  entropy: Float32Array;
  /** Sums of the squared probabilities; null where they are not wanted. */
  squares: Float32Array | null;
}

export interface ScoreResult {
  /** As long as `tokenIds`; 0 where not scored, and at vectors of images, which nothing predicts. */
  logprobs: Float32Array;
  /** As long as `tokenIds`, in nats; only when asked for. */
  entropy: Float32Array | null;
  /** As long as `tokenIds`, above 0 and at most 1 where scored; only when asked for. */
  sumPiSquared: Float32Array | null;
}

/** One sequence of a training batch. */
export interface TrainSequence {
  tokenIds: ArrayLike<number>;
  /** 1 where the token takes part in the loss. As long as `tokenIds`; 0 at the first token and at vectors of images. */
  lossMask: ArrayLike<number>;
  /** Per-token values that the loss wants (advantages, oldLogprobs, ...), each as long as `tokenIds`. */
  columns?: Record<string, ArrayLike<number>>;
}

/**
 * What a loss sees of one micro-batch: its masked-in tokens only, sequence after sequence.
 * Tokens of the i-th sequence are `[offsets[i], offsets[i + 1])`.
 */
export interface LossInputs {
  /** Index in the whole batch of each sequence of this micro-batch. */
  sequenceIndices: Int32Array;
  offsets: Int32Array;
  logprobs: Float32Array;
  /** Entropy of the distribution at each token, in nats. */
  entropy: Float32Array;
  columns: Record<string, Float32Array>;
  /** Of the whole mini-batch, however it is cut: denominators must come from here. */
  totals: { tokens: number; sequences: number };
}

export interface LossOutputs {
  /** This micro-batch's share of the loss; shares add up. */
  loss: number;
  /** dLoss/dLogprob for each token of the inputs. */
  dLogprobs: Float32Array;
  /** dLoss/dEntropy for each token, where the loss has an entropy term. */
  dEntropy?: Float32Array;
  /** Each a share too: values of all micro-batches are added. */
  metrics?: Record<string, number>;
}

export type LossFunction = (inputs: LossInputs) => LossOutputs;

export interface OptimizerOptions {
  learningRate: number;
  /** Default [0.9, 0.999]. */
  betas?: [number, number];
  /** Default 1e-8. */
  epsilon?: number;
  /** Decoupled (AdamW), on matrices only. Default 0. */
  weightDecay?: number;
  /** Global-norm clipping; 0 (default) means off. */
  maxGradNorm?: number;
}

/**
 * A micro-batch, as a value: what it holds does not depend on weights, so that it can be computed anywhere. Rows of equal length, each
 * a tree of tokens, depth first; arrays of tokens are `rows * rowLength` long.
 */
export interface MicroBatchShard {
  rows: number;
  rowLength: number;
  tokens: Int32Array;
  positions: Int32Array;
  /** Up to which place in the row, exclusive, tokens continue each token. 0 for padding. */
  ends: Int32Array;
  /** Of each score: the place that predicts it, and the token that is scored. */
  sources: Int32Array;
  targets: Int32Array;
  /** Logits are divided by this. */
  temperature: number;
  /** Of its tokens from the vocabulary's end on: which images' vectors they are. Absent: all tokens are text. */
  images?: ShardImage[];
}

/**
 * An image of a shard. Ids of vectors count from the vocabulary's end on in the order in which the shard's rows first show
 * them, so that what is computed does not depend on who placed which image first.
 */
export interface ShardImage {
  /** The id of its first vector, and how many follow. */
  first: number;
  count: number;
  image: LoadedImage;
}

/** A micro-batch of a training batch. */
export interface GradientShard extends MicroBatchShard {
  /** Of each token of `inputs`, its score: sequences that begin alike share scores. */
  scores: Int32Array;
  /** What the loss sees, but for what the weights decide. */
  inputs: Omit<LossInputs, "logprobs" | "entropy">;
}

/** What a shard adds to the batch. */
export interface ShardGradient {
  /** By all trained tensors, one behind the other in the order of the engine's list. */
  gradient: Float32Array;
  /** As the loss gave them. */
  loss: number;
  metrics: Record<string, number>;
}

export interface TrainOptions {
  /** Logits are divided by this. Default 1. */
  temperature?: number;
  /** Most tokens (padding included) of one micro-batch. Default: chosen by the memory budget. */
  microBatchTokens?: number;
  /**
   * Computes a micro-batch somewhere; `here` does so in this engine, one after the other. All are asked for at once; their
   * gradients are added in the order of the plan, so that the bits are those of one engine. Default: `here`.
   */
  compute?: (shard: GradientShard, here: () => Promise<ShardGradient>) => Promise<ShardGradient>;
  signal?: AbortSignal;
}

export interface TrainResult {
  loss: number;
  /** Global norm before clipping; 0 when no step was taken. */
  gradNorm: number;
  /** Sums over micro-batches of what the loss returned. */
  metrics: Record<string, number>;
  /** Tokens in the loss. */
  lossTokens: number;
  /** Tokens that went through the network, padding and shared prefixes counted once. */
  evaluatedTokens: number;
  /** Of these, what only fills up rows to a common length. */
  paddingTokens: number;
  microBatches: number;
}

export interface PolicyEngine {
  readonly info: ModelInfo;
  /** The GGUF's own chat template (Jinja), or null. */
  readonly chatTemplate: string | null;
  /**
   * Text to tokens. `special` (default true) lets text like `<|im_end|>` become its special token; with thousands of
   * them in one text llama.cpp then takes a time that grows with their square, which `DeltaTokenizer` does not.
   */
  tokenize(text: string, options?: { special?: boolean }): Int32Array;
  /** The same beside the event loop, for long texts. Absent where texts take no time. */
  tokenizeAside?(text: string, options?: { special?: boolean }): Promise<Int32Array>;
  /** Every control token and every user-defined token of the vocabulary, by id. */
  listSpecialTokens(): readonly SpecialToken[];
  /** Tokens to text. `special` (default true) writes special tokens out. */
  detokenize(tokenIds: ArrayLike<number>, options?: { special?: boolean }): string;
  /** Absent: the model was loaded without a projector, and takes text alone. */
  readonly images?: ImageEncoder | undefined;
  createSequence(): PolicySequence;
  score(sequences: readonly ScoreSequence[], options?: ScoreOptions): Promise<ScoreResult[]>;
  /**
   * Forward, `loss`, backward over micro-batches; then one optimizer step, unless `optimizer` is null
   * (gradients then stay accumulated for the next call).
   */
  train(
    batch: readonly TrainSequence[],
    loss: LossFunction,
    optimizer: OptimizerOptions | null,
    options?: TrainOptions,
  ): Promise<TrainResult>;
  /** The scores of a shard that another engine of the same weights planned. Absent: it cannot. */
  computeScores?(shard: ScoreShard, options?: { signal?: AbortSignal }): Promise<ShardScores>;
  /** The gradient of a shard that another engine of the same weights planned; nothing is accumulated. Absent: it cannot. */
  computeGradient?(
    shard: GradientShard,
    loss: LossFunction,
    options?: { signal?: AbortSignal },
  ): Promise<ShardGradient>;
  /** Forgets every KV entry, as after a weight update; `train` does it after each step. */
  flushCache(): Promise<void>;
  /** Writes the LoRA adapter as a GGUF that stock llama.cpp loads. */
  saveAdapter(path: string): Promise<void>;
  /** Writes the base model with its current weights as GGUF. */
  saveModel(path: string): Promise<void>;
  dispose(): Promise<void>;
}
