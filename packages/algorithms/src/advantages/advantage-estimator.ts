import type { SampledTurn, TrajectorySegment } from "@cria/core";

/**
 * A batch of trajectories as flat per-token arrays: trajectory i owns `[offsets[i], offsets[i + 1])`. Tokens whose mask
 * is 0 (prompt, tools, users, templates) may be in it or left out: they never change a result, but that `tokenIds` tell by them which
 * turns answer the same text.
 */
export interface AdvantageInputs {
  tokenLevelRewards: ArrayLike<number>;
  /** 1 = sampled by the policy. */
  responseMask: ArrayLike<number>;
  /** One more than there are trajectories. */
  offsets: ArrayLike<number>;
  /** Group of each trajectory: rollouts of the same prompt share one. */
  groups: readonly string[];
  /**
   * Of each trajectory that branches, its stretches of tokens, counted from its first; null: one conversation, end to end.
   * Left out: no trajectory branches.
   */
  segments?: readonly (readonly BranchSegment[] | null)[];
  /**
   * Of each trajectory the turns that the policy sampled, in the order of their tokens, as a tree: each names the one before it.
   * Training gives them; an estimator of `defineEstimator` always has them.
   */
  turns?: readonly (readonly EstimatorTurn[])[];
  /** All tokens, by which turns with equal histories are known (gigpo). Training gives them. Left out: no histories are known. */
  tokenIds?: ArrayLike<number>;
  /**
   * Of each trajectory, the part of its last sampled token's reward that the whole episode earned: each path of a trajectory that
   * branches ends with it. Default 0; mt_grpo, whose outcome it is, then takes the whole reward.
   */
  episodeRewards?: ArrayLike<number>;
  /** Critic's value before each token was sampled; there for estimators that need "values" (gae). */
  values?: ArrayLike<number>;
  /** Reward of a greedy rollout of each trajectory's prompt; there for estimators that need "baselines" (remax). */
  baselines?: ArrayLike<number>;
  /** By the policy that the update starts from; there for estimators that need "sumPiSquared" (optimal_token_baseline). */
  oldLogprobs?: ArrayLike<number>;
  /** Sum of the squared probabilities of the distribution that each token was drawn from; there with `oldLogprobs`. */
  sumPiSquared?: ArrayLike<number>;
  /** Importance weights of the rollout correction, there with `oldLogprobs` where weights are asked for. Default 1. */
  rolloutIsWeights?: ArrayLike<number>;
  /** Parts of the reward, each with its weight; there for estimators that need "rewardParts" (gdpo). */
  rewardParts?: readonly RewardPart[];
  /** Discount of each later sampled token, of gigpo of each later turn, 0 to 1. Default 1. */
  gamma?: number;
  /** GAE's bias-variance trade, 0 to 1. Default 1. */
  lam?: number;
  /**
   * Whether advantages are divided by the group's standard deviation (grpo, grpo_passk, gdpo, mt_grpo, gigpo). Default true; of gigpo
   * false.
   */
  normalizeByStd?: boolean;
  /** Weight of a turn's own advantage beside its episode's (gigpo, mt_grpo). Default 1. */
  turnWeight?: number;
}

/** A stretch of a trajectory's tokens, `[start, end)`, behind the one at index `parent`; -1: it begins a conversation. */
export type BranchSegment = Pick<TrajectorySegment, "start" | "end" | "parent">;

/**
 * A turn that the policy sampled, and what was given to it. `start` and `end` count from its trajectory's first token, as segments
 * do: its tokens are `[offsets[i] + start, offsets[i] + end)` of the inputs.
 */
export interface EstimatorTurn extends SampledTurn {
  /**
   * Sum of the step rewards that tools gave to its calls, and of the scores that an interaction or the agent gave to it: as they were
   * given, before the weights of `reward_model.aggregation`, by which they are a part of `tokenLevelRewards`. 0: none.
   */
  tools: number;
  scores: number;
}

/** One of several rewards, kept apart. */
export interface RewardPart {
  /** One for each trajectory. */
  values: ArrayLike<number>;
  weight: number;
}

/** Per-token arrays as long as the inputs', 0 where the mask is 0. */
export interface AdvantageOutputs {
  advantages: Float32Array;
  /** What a critic should have predicted; for estimators without one, the return that the advantage was made of. */
  returns: Float32Array;
  metrics: Record<string, number>;
}

/** Inputs that cost a model, rollouts or a forward pass of their own, or keys of the config: made for those who ask. */
export const costlyInputs = ["values", "baselines", "sumPiSquared", "rewardParts"] as const;

export type CostlyInput = (typeof costlyInputs)[number];

/**
 * A pure function over the conversations that did not fail; what it needs beside their rewards stands on it. `defineEstimator`
 * makes one.
 */
export interface AdvantageEstimator {
  (inputs: AdvantageInputs): AdvantageOutputs;
  /**
   * "values": a critic is trained beside the actor. "baselines": one greedy rollout more for each prompt. "sumPiSquared": every
   * trajectory is evaluated before the advantages, for `oldLogprobs` and `sumPiSquared`. "rewardParts": the values that
   * `algorithm.gdpo_reward_keys` names. Default none.
   */
  readonly needs?: readonly CostlyInput[];
  /**
   * Whether a trajectory's advantage comes from its group's other rewards. Where failures leave fewer than two of a group
   * there is nothing to compare, and the whole group is dropped; other estimators lose the failed conversations alone.
   * Default false.
   */
  readonly comparesGroup?: boolean;
}
