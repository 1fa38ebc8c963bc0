/** Values of the tokens in the loss of one micro-batch, sequence after sequence. */
export interface PolicyLossInputs {
  logprobs: Float32Array;
  oldLogprobs: Float32Array;
  advantages: Float32Array;
  /** Tokens of the i-th sequence are `[offsets[i], offsets[i + 1])`; a sequence is never cut. */
  offsets: Int32Array;
  /** Whatever else the batch carries, what `prepare` made included. */
  columns: Record<string, Float32Array>;
}

/** A whole mini-batch before its first gradient: what statistics over it are made of. */
export interface MiniBatch {
  /** By the weights that the update starts from. */
  logprobs: Float32Array;
  oldLogprobs: Float32Array;
  advantages: Float32Array;
  /** Uniform in [0, 1), seeded by the caller. */
  random: () => number;
}

/** Parameters of all losses, under the names of `actor` and `actor.policy_loss`. */
export interface PolicyLossParameters {
  /** Of ratios; of geo_mean: of log-ratios; of dppo: of divergences. */
  clipRatioLow: number;
  clipRatioHigh: number;
  /** vanilla: dual clip's bound for negative advantages; dppo: where ratios are cut off. Above 1. */
  clipRatioC: number;
  /** clip_cov: share of tokens left out, and the range of covariances that they are drawn from. */
  clipCovRatio: number;
  clipCovLb: number;
  clipCovUb: number;
  /** kl_cov: share of tokens with a penalty, and its coefficient. */
  klCovRatio: number;
  ppoKlCoef: number;
  /** sapo: temperatures where A > 0, and elsewhere. */
  tauPos: number;
  tauNeg: number;
  /** dro: weight of the squared log-ratio, 0 or above; null: there is no default. */
  droBeta: number | null;
}

export interface TokenLoss {
  /** Loss of each token. A loss of whole sequences gives each token its sequence's. */
  losses: Float64Array;
  /** d (sum of the sequence's losses) / d logprobs[i], where the loss does not stop gradients. */
  gradients: Float64Array;
  /** Values of each token, to be averaged over the tokens of the mini-batch. */
  metrics: Record<string, Float64Array>;
}

export interface PolicyLoss {
  evaluate(inputs: PolicyLossInputs, parameters: PolicyLossParameters): TokenLoss;
  /** The only aggregation that the loss is defined with; default: the configured one. */
  aggregation?: string;
  /** How rollout-correction weights enter: token by token (default), or by their geometric mean over the sequence. */
  correction?: "token" | "sequence";
  /** true: loss and gradient are 0 wherever a sequence's advantages are, so that such sequences need no pass at all. */
  vanishesWithoutAdvantage?: boolean;
  /**
   * For statistics over the whole mini-batch, which no micro-batch can see: called once before its first micro-batch,
   * gives columns that `evaluate` finds again.
   */
  prepare?(miniBatch: MiniBatch, parameters: PolicyLossParameters): Record<string, Float32Array>;
}
