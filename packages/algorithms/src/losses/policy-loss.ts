import type { PolicyLossParameters } from "./policy-loss-parameters.js";

/** Values of the tokens in the loss of one micro-batch, sequence after sequence. */
export interface PolicyLossInputs {
  logprobs: Float32Array;
  oldLogprobs: Float32Array;
  advantages: Float32Array;
  /** Tokens of the i-th sequence are `[offsets[i], offsets[i + 1])`; a sequence is never split. */
  offsets: Int32Array;
  /** All other columns of the batch, including those of `prepare`. */
  columns: Record<string, Float32Array>;
}

/** A whole mini-batch before its first gradient: the input of statistics over it. */
export interface MiniBatch {
  /** Log-probabilities by the weights that the update starts from. */
  logprobs: Float32Array;
  oldLogprobs: Float32Array;
  advantages: Float32Array;
  /** Uniform in [0, 1), seeded by the caller. */
  random: () => number;
}

export interface TokenLoss {
  /** Loss of each token. A loss of whole sequences assigns each token its sequence's loss. */
  losses: Float64Array;
  /** d (sum of the sequence's losses) / d logprobs[i], unless the loss stops gradients. */
  gradients: Float64Array;
  /** Values of each token, to average over the tokens of the mini-batch. */
  metrics: Record<string, Float64Array>;
}

export interface PolicyLoss {
  evaluate(inputs: PolicyLossInputs, parameters: PolicyLossParameters): TokenLoss;
  /** Required parameters: they have no default. */
  requires?: readonly (keyof PolicyLossParameters)[];
  /** Parameters, besides the clips, that have an effect only if ratios differ from 1. */
  ofRatios?: readonly (keyof PolicyLossParameters)[];
  /** The only aggregation that the loss is defined with; default: the configured one. */
  aggregation?: string;
  /** Rollout-correction weights apply per token (default), or as their geometric mean over the sequence. */
  correction?: "token" | "sequence";
  /** true: loss and gradient are 0 if all of a sequence's advantages are, so that such sequences need no pass. */
  vanishesWithoutAdvantage?: boolean;
  /**
   * Computes statistics over the whole mini-batch, which no micro-batch has: called once before its first
   * micro-batch; returns columns for `evaluate`.
   */
  prepare?(miniBatch: MiniBatch, parameters: PolicyLossParameters): Record<string, Float32Array>;
}
