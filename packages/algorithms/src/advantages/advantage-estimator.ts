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
  /** Critic's value before each token was sampled; there for estimators that need "values" (gae). */
  values?: ArrayLike<number>;
  /** Reward of a greedy rollout of each trajectory's prompt; there for estimators that need "baselines" (remax). */
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

/** Inputs that cost a model or rollouts of their own, so that they are made for those who ask. */
export const costlyInputs = ["values", "baselines"] as const;

export type CostlyInput = (typeof costlyInputs)[number];

/**
 * A pure function over the conversations that did not fail; what it needs beside their rewards stands on it:
 * `Object.assign((inputs: AdvantageInputs) => { ... }, { needs: ["values"] as const, comparesGroup: true })`.
 */
export interface AdvantageEstimator {
  (inputs: AdvantageInputs): AdvantageOutputs;
  /** "values": a critic is trained beside the actor. "baselines": one greedy rollout more for each prompt. Default none. */
  readonly needs?: readonly CostlyInput[];
  /**
   * Whether a trajectory's advantage comes from its group's other rewards. Where failures leave fewer than two of a group
   * there is nothing to compare, and the whole group is dropped; other estimators lose the failed conversations alone.
   * Default false.
   */
  readonly comparesGroup?: boolean;
}
