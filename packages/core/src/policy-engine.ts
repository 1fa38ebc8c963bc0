/**
 * The engine's interface for the rest of Cria: generation, scoring and training over one copy of the weights.
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
  /** Most tokens of one sequence. */
  contextSize: number;
  /** Context length that the model was trained with. */
  trainingContextSize: number;
  /** Most sequences in the KV cache at the same time; further ones wait outside it while idle. */
  maxSequences: number;
  /** The computing device: "cpu", "cuda", "metal" or "vulkan". */
  device: string;
  /** True if decoding uses llama.cpp's flash attention. */
  flashAttention: boolean;
  threads: number;
  /**
   * Instruction set of the engine's own products on the CPU: "portable", "avx2" or "avx512". The CPU's best, or the one
   * named by the environment variable CRIA_CPU_KERNEL. Together with `ggmlBuild` it determines the last bits of every
   * result on a CPU.
   */
  cpuKernel: string;
  /** Build of ggml for the other operations: "haswell" for libggml-cpu-haswell.so; "default" if there is only one. */
  ggmlBuild: string;
  /**
   * True if the logprob of a sampled token has the bits that the training graph computes for it with the same weights:
   * `score` then repeats what `generate` returned (docs/determinism.md).
   */
  samplesAsTrained: boolean;
  bosToken: number | null;
  eosToken: number | null;
  /** Every token that ends a turn or the text. */
  endOfGenerationTokens: number[];
  /** True if a whole prompt must begin with the BOS token. */
  addBos: boolean;
  trainable: "none" | "lora" | "full";
  /** Number of trainable parameters. */
  trainableParameterCount: number;
  /** Number of weight tensors by type, for example `{ f32: 40, q8_0: 28 }`. */
  weightTypes: Record<string, number>;
}

/** A token that is split out of a text before the rest is tokenized. */
export interface SpecialToken {
  id: number;
  text: string;
  /**
   * True if the GGUF marks it as a control token (or as the unknown token): it steers the model, and text becomes
   * that token only if special tokens are requested. Others are the vocabulary's "user-defined" words.
   */
  control: boolean;
  /** True if it removes the whitespace before it (`stripLeft`), or after it (`stripRight`). */
  stripLeft: boolean;
  stripRight: boolean;
}

export interface SamplingOptions {
  /** 0 means greedy. Logprobs are those of the softmax at this temperature (greedy: at 1). Default 1. */
  temperature?: number;
  /** Keep the smallest set of tokens whose probability reaches this; (0, 1], default 1 (off). */
  topP?: number;
  /** Sample among the k most likely tokens; 0 (default) means all. */
  topK?: number;
  /** Min-p: drop tokens below `minP` times the top probability; [0, 1), default 0. */
  minP?: number;
  /** 32-bit seed. The t-th sampled token of a request depends only on the seed, t and the logits. */
  seed?: number;
}

export interface GenerateOptions extends SamplingOptions {
  /** Maximum number of tokens to sample, at least 1. */
  maxTokens: number;
  /** Tokens that end the turn (kept in `tokenIds`). Default: `info.endOfGenerationTokens`. */
  stopTokens?: readonly number[];
  /** Texts that end the turn (kept in `tokenIds`, cut from `text`). */
  stopStrings?: readonly string[];
  /**
   * A grammar in llama.cpp's notation (GBNF); the sampled text must match its rule `root`. It applies before `topK`,
   * `topP` and `minP`, which choose among the allowed tokens. A token is allowed when the text including it can still
   * become a match, even if it ends inside a character; special tokens count as their text. Tokens that end the
   * generation are allowed exactly where the text may end, and always end it. At most 256 KiB.
   */
  grammar?: string;
  /** Number of most likely tokens to report with each sampled one; 0 (default) to 64. Does not affect sampling. */
  topLogprobs?: number;
  signal?: AbortSignal;
  /** Called with each newly sampled piece of text, for streaming. */
  onText?: (text: string) => void;
}

export interface GenerateStats {
  /** Tokens evaluated before sampling: those of the sequence and the delta that were not reused. */
  prefillTokens: number;
  /** Tokens with KV in the cache: the sequence's own, or another sequence's with the same beginning. */
  reusedTokens: number;
  /** Number of sampled tokens. */
  decodeTokens: number;
  queueMs: number;
  prefillMs: number;
  decodeMs: number;
}

/** A token that could have been sampled. */
export interface TokenCandidate {
  id: number;
  /**
   * Computed as for the sampled token: over the full vocabulary (with a grammar: the allowed tokens), at the sampling
   * temperature.
   */
  logprob: number;
}

/** Tokens as they were sampled. */
export interface SampledTokens {
  tokenIds: Int32Array;
  /**
   * Log-probability of each of `tokenIds`: over the full vocabulary (with a grammar: the allowed tokens), at the
   * sampling temperature.
   */
  logprobs: Float32Array;
  /**
   * Only with a grammar; as long as `tokenIds`. 1: the forbidden tokens together have more than 1e-9 of the
   * probability at the sampling temperature (greedy: 1). 0: the token counts as sampled without constraint.
   */
  constrained?: Uint8Array;
  /**
   * Only with `topLogprobs`: the most likely tokens for each of `tokenIds`, by falling logprob, ties by id: before
   * `topK`, `topP` and `minP`, and fewer where a grammar allows fewer.
   */
  topLogprobs?: TokenCandidate[][];
  /** The stop string that ended the text; absent when none did. */
  stopString?: string;
}

export interface GenerateResult extends SampledTokens {
  finishReason: "stop" | "length" | "aborted";
  /** The sampled text without the stop token or stop string. */
  text: string;
  /**
   * Number of weight updates that the policy had had which sampled it, plus 1. Only where several versions of the policy
   * may sample a conversation.
   */
  policyVersion?: number;
  /** The model that sampled the turn in place of the policy. Absent: the policy did. */
  sampledBy?: "teacher";
  stats: GenerateStats;
}

/** One conversation's tokens. Its KV is kept between turns. */
export interface PolicySequence {
  /** Number of tokens so far, sampled ones included. */
  readonly tokenCount: number;
  /**
   * Appends `deltaTokenIds` (may be empty after a fork with pending tokens) and samples the next turn.
   * @throws EngineError when the logits are not finite, the request does not fit, or memory runs out; for a wrong
   * grammar before sampling; and when a grammar allows no token or is too ambiguous. The engine remains usable.
   */
  generate(deltaTokenIds: ArrayLike<number>, options: GenerateOptions): Promise<GenerateResult>;
  /** A second sequence with the same tokens; it shares everything evaluated so far. */
  fork(): PolicySequence;
  /**
   * Another kept version of the same weights (`PolicyVersion.engine`) samples the sequence from here on. The keys and
   * values of its tokens stay those of the versions that evaluated them (in-flight updates, arXiv:2509.19128); if they
   * are lost, the same versions evaluate them again. Absent: the engine cannot.
   * @throws EngineError while it is generating, and where one of the two is not a kept version of this model.
   */
  goOnWith?(engine: Pick<PolicyEngine, "createSequence">): void;
  /** Evaluates tokens without sampling, so that forks share them. */
  prefill(deltaTokenIds: ArrayLike<number>, options?: { signal?: AbortSignal }): Promise<void>;
  dispose(): void;
}

/**
 * Tokens that could stand in place of each token of a sequence, `count` for each: those for token t are
 * `[t * count, (t + 1) * count)` of the arrays.
 */
export interface CandidateTokens {
  /** At least 1. */
  count: number;
  ids: Int32Array;
}

/** The likeliest tokens in place of each token, by falling logprob, ties by id. 0 at tokens that are not scored. */
export interface LikeliestTokens extends CandidateTokens {
  /** Over the full vocabulary. */
  logprobs: Float32Array;
}

/** The candidates that a scoring looks for. */
export interface LikeliestOptions {
  /** Number for each token, at least 1, and at most as many as there are ids to find. */
  count: number;
  /** Only ids below this are found, for other models with a smaller vocabulary. Default: all. */
  below?: number;
}

export interface ScoreSequence {
  tokenIds: ArrayLike<number>;
  /**
   * Score tokens from here on; earlier tokens, and vectors of images, have logprob 0. At least 1 (the first token has
   * no prefix). Default 1.
   */
  from?: number;
}

export interface ScoreOptions {
  /** Divisor of the logits. Default 1. */
  temperature?: number;
  /** false: score with the adapter off, as the reference policy. Default true. */
  adapter?: boolean;
  /** Also return the entropy of each distribution. */
  entropy?: boolean;
  /** Also return the sum of the squared probabilities of each distribution. */
  sumPiSquared?: boolean;
  /** Also return the likeliest tokens of each distribution. */
  likeliest?: LikeliestOptions;
  /**
   * Computes a micro-batch elsewhere; `here` computes it in this engine, one after the other; `sequences` are the
   * indices of its sequences. All calls start at once. Default: `here`.
   */
  compute?: (shard: ScoreShard, here: () => Promise<ShardScores>, sequences: ArrayLike<number>) => Promise<ShardScores>;
  signal?: AbortSignal;
}

/** A micro-batch of sequences to score. */
export interface ScoreShard extends MicroBatchShard {
  /** false: with the adapter off. */
  adapter: boolean;
  /** Also compute the sums of the squared probabilities. */
  squares: boolean;
  /** Also find the likeliest tokens. */
  likeliest?: LikeliestOptions;
}

/** Results of a score shard: one value for each of its targets, and `count` values for likeliest tokens. */
export interface ShardScores {
  logprobs: Float32Array;
  /** In nats. */
  entropy: Float32Array;
  /** Sums of the squared probabilities; null unless requested. */
  squares: Float32Array | null;
  /** Absent unless requested. */
  likeliest?: LikeliestTokens;
}

export interface ScoreResult {
  /** As long as `tokenIds`; 0 at tokens that are not scored, and at vectors of images, which are not predicted. */
  logprobs: Float32Array;
  /** As long as `tokenIds`, in nats; null unless requested. */
  entropy: Float32Array | null;
  /** As long as `tokenIds`, in (0, 1] at scored tokens; null unless requested. */
  sumPiSquared: Float32Array | null;
  /** Absent unless requested. */
  likeliest?: LikeliestTokens;
}

/** One sequence of a training batch. */
export interface TrainSequence {
  tokenIds: ArrayLike<number>;
  /** 1 for tokens in the loss. As long as `tokenIds`; 0 at the first token and at vectors of images. */
  lossMask: ArrayLike<number>;
  /** Per-token values for the loss (advantages, oldLogprobs, ...), each as long as `tokenIds`. */
  columns?: Record<string, ArrayLike<number>>;
  /** Further tokens whose logprobs the loss reads. All sequences of a batch have as many for each token, or none. */
  candidates?: TrainCandidates;
}

/** Candidates of a training sequence. They are read at tokens in the loss, and must be of the vocabulary there. */
export interface TrainCandidates extends CandidateTokens {
  /** Values of each candidate for the loss (teacherLogprobs, ...), each as long as `ids`. */
  columns: Record<string, ArrayLike<number>>;
}

/** Candidates of the tokens of a micro-batch, `count` for each. */
export interface LossCandidates extends CandidateTokens {
  /** Logprobs by the policy, as those of the tokens themselves. */
  logprobs: Float32Array;
  columns: Record<string, Float32Array>;
}

/**
 * Inputs of a loss for one micro-batch: only its masked-in tokens, sequence after sequence. Tokens of the i-th sequence
 * are `[offsets[i], offsets[i + 1])`.
 */
export interface LossInputs {
  /** Index in the whole batch of each sequence of this micro-batch. */
  sequenceIndices: Int32Array;
  offsets: Int32Array;
  logprobs: Float32Array;
  /** Entropy of the distribution at each token, in nats. */
  entropy: Float32Array;
  columns: Record<string, Float32Array>;
  /** Absent: the batch has none. */
  candidates?: LossCandidates;
  /** Counts of the whole mini-batch, however it is split: use these as denominators. */
  totals: LossTotals;
}

/** Counts of a whole mini-batch. */
export interface LossTotals {
  /** Tokens in the loss that were sampled; other kinds are counted by their terms. */
  tokens: number;
  /** Sequences that have such tokens. */
  sequences: number;
  /** Counts of the terms of a loss that see other tokens, by the term's name. */
  terms?: Record<string, { tokens: number; sequences: number }>;
}

export interface LossOutputs {
  /** This micro-batch's share of the loss; shares add up. */
  loss: number;
  /** dLoss/dLogprob for each token of the inputs. */
  dLogprobs: Float32Array;
  /** dLoss/dEntropy for each token, if the loss has an entropy term. */
  dEntropy?: Float32Array;
  /** dLoss/dLogprob of each candidate of the inputs. Absent: 0. */
  dCandidates?: Float32Array;
  /** Also shares: the values of all micro-batches are added. */
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
 * A micro-batch as a value: it does not depend on weights, so it can be computed anywhere. Rows of equal length, each a
 * tree of tokens in depth-first order; arrays of tokens are `rows * rowLength` long.
 */
export interface MicroBatchShard {
  rows: number;
  rowLength: number;
  tokens: Int32Array;
  positions: Int32Array;
  /**
   * For each token, the end (exclusive) of its subtree: the position in the row up to which tokens continue it. 0
   * for padding.
   */
  ends: Int32Array;
  /** For each score: the position that predicts it, and the scored token (`targets`). */
  sources: Int32Array;
  targets: Int32Array;
  /** Further tokens that are scored in place of each target, as many for each. Absent: none. */
  candidates?: Int32Array;
  /** Divisor of the logits. */
  temperature: number;
  /** The images of the vectors, whose token ids start at the vocabulary's end. Absent: all tokens are text. */
  images?: ShardImage[];
}

/**
 * An image of a shard. Ids of vectors count from the vocabulary's end on, in the order of their first appearance in the
 * shard's rows, so that results do not depend on the order in which images were placed.
 */
export interface ShardImage {
  /** The id of its first vector, and the number of vectors. */
  first: number;
  count: number;
  image: LoadedImage;
}

/** A micro-batch of a training batch. */
export interface GradientShard extends MicroBatchShard {
  /** Index of the score of each token of `inputs`: sequences with the same beginning share scores. */
  scores: Int32Array;
  /** Inputs of the loss, except those that depend on the weights. */
  inputs: Omit<LossInputs, "logprobs" | "entropy" | "candidates">;
  /** Columns of the candidates of each token of `inputs`. Absent without candidates. */
  candidateColumns?: Record<string, Float32Array>;
}

/** A shard's contribution to the batch. */
export interface ShardGradient {
  /** Gradients of all trained tensors, concatenated in the order of the engine's list. */
  gradient: Float32Array;
  /** The loss's result: this shard's part of it. */
  loss: number;
  metrics: Record<string, number>;
}

export interface TrainOptions {
  /** Divisor of the logits. Default 1. */
  temperature?: number;
  /** Most tokens (padding included) of one micro-batch. Default: depends on the memory budget. */
  microBatchTokens?: number;
  /**
   * Computes a micro-batch elsewhere; `here` computes it in this engine, one after the other. All calls start at once;
   * gradients are added in the order of the plan, so that the bits equal those of one engine. Default: `here`.
   */
  compute?: (shard: GradientShard, here: () => Promise<ShardGradient>) => Promise<ShardGradient>;
  signal?: AbortSignal;
}

export interface TrainResult {
  loss: number;
  /** Global norm before clipping; 0 without a step. */
  gradNorm: number;
  /** Sums of the loss's metrics over all micro-batches. */
  metrics: Record<string, number>;
  /** Number of tokens in the loss. */
  lossTokens: number;
  /** Number of tokens that the network evaluated, with padding, and shared prefixes counted once. */
  evaluatedTokens: number;
  /** Part of these that only pads rows to a common length. */
  paddingTokens: number;
  microBatches: number;
}

/** A frozen version of the policy, kept while later updates change the live one. */
export interface PolicyVersion {
  /**
   * The live engine, but for its sequences: this version evaluates and samples them. If the engine's tensors can be
   * read and written, they have this version's values.
   */
  readonly engine: PolicyEngine;
  /** Writes the version's trained weights as a GGUF that stock llama.cpp loads: its LoRA adapter, or the whole model. */
  save(path: string): Promise<void>;
  /** Frees its memory. @throws EngineError (`engine/version-in-use`) while one of its sequences is not disposed. */
  dispose(): Promise<void>;
}

export interface PolicyEngine {
  readonly info: ModelInfo;
  /** The GGUF's own chat template (Jinja), or null. */
  readonly chatTemplate: string | null;
  /**
   * Text to tokens. `special` (default true) converts text such as `<|im_end|>` to its special token. With thousands of
   * them in one text llama.cpp takes a time that grows with the square of their number; `DeltaTokenizer` does not.
   */
  tokenize(text: string, options?: { special?: boolean }): Int32Array;
  /** The same off the event loop, for long texts. Absent if tokenizing takes no time. */
  tokenizeAside?(text: string, options?: { special?: boolean }): Promise<Int32Array>;
  /** Every control token and every user-defined token of the vocabulary, by id. */
  listSpecialTokens(): readonly SpecialToken[];
  /** Tokens to text. `special` (default true) includes the text of special tokens. */
  detokenize(tokenIds: ArrayLike<number>, options?: { special?: boolean }): string;
  /** Absent: the model was loaded without a projector, and takes only text. */
  readonly images?: ImageEncoder | undefined;
  /**
   * Roles of self-play whose answers are each sampled by an adapter of their own. Absent: one policy plays all roles.
   */
  readonly roles?: readonly string[];
  /**
   * An empty sequence.
   * @param role the role whose adapter samples it, where each has its own; default "policy".
   */
  createSequence(role?: string): PolicySequence;
  /**
   * Keeps the current policy, or the one in a file that `PolicyVersion.save` wrote, as a version. Absent: the
   * engine cannot.
   * @throws EngineError when no version can be kept: the model is not trained.
   */
  keepVersion?(options?: { path?: string | undefined }): Promise<PolicyVersion>;
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
  /** The scores of a shard that another engine with the same weights planned. Absent: not supported. */
  computeScores?(shard: ScoreShard, options?: { signal?: AbortSignal }): Promise<ShardScores>;
  /**
   * The gradient of a shard that another engine with the same weights planned; accumulates nothing. Absent: not
   * supported.
   */
  computeGradient?(
    shard: GradientShard,
    loss: LossFunction,
    options?: { signal?: AbortSignal },
  ): Promise<ShardGradient>;
  /** Forgets every KV entry of the live policy, as after a weight update; `train` does it after each step. */
  flushCache(): Promise<void>;
  /** Writes the LoRA adapter as a GGUF that stock llama.cpp loads. */
  saveAdapter(path: string): Promise<void>;
  /** Writes the base model with its current weights as GGUF. */
  saveModel(path: string): Promise<void>;
  dispose(): Promise<void>;
}
