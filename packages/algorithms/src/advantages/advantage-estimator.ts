/**
 * A batch of trajectories as flat per-token arrays: trajectory i owns `[offsets[i], offsets[i + 1])`. Tokens whose mask
 * is 0 (prompt, tools, users, templates) may be in it or left out: they never change a result.
 */
export interface AdvantageInputs {
  tokenLevelRewards: ArrayLike<number>;
  /** 1 = sampled by the policy. */
  responseMask: ArrayLike<number>;
  /** One more than there are trajectories. */
  offsets: ArrayLike<number>;
  /** Group of each trajectory: rollouts of the same prompt share one. */
  groups: readonly string[];
  /** Critic's value before each token was sampled (gae). */
  values?: ArrayLike<number>;
  /** Reward of a greedy rollout of each trajectory's prompt (remax). */
  baselines?: ArrayLike<number>;
  /** Discount of each later sampled token, 0 to 1. Default 1. */
  gamma?: number;
  /** GAE's bias-variance trade, 0 to 1. Default 1. */
  lam?: number;
  /** false leaves out the division by the group's standard deviation (grpo, grpo_passk). Default true. */
  normalizeByStd?: boolean;
}

/** Per-token arrays as long as the inputs', 0 where the mask is 0. */
export interface AdvantageOutputs {
  advantages: Float32Array;
  /** What a critic should have predicted; for estimators without one, the return that the advantage was made of. */
  returns: Float32Array;
  metrics: Record<string, number>;
}

export type AdvantageEstimator = (inputs: AdvantageInputs) => AdvantageOutputs;
