import type { SampledTurn, TrajectorySegment } from "@cria/core";

/**
 * A batch of trajectories as flat per-token arrays: trajectory i owns `[offsets[i], offsets[i + 1])`. Tokens with
 * mask 0 (prompt, tools, users, templates) may be included or left out without changing a result, except that
 * `tokenIds` compares turns by them.
 */
export interface AdvantageInputs {
  tokenLevelRewards: ArrayLike<number>;
  /** 1 = sampled by the policy. */
  responseMask: ArrayLike<number>;
  /** One entry more than there are trajectories. */
  offsets: ArrayLike<number>;
  /** Group of each trajectory: rollouts of the same prompt share one. */
  groups: readonly string[];
  /**
   * For each trajectory that branches, its segments, with indices from the trajectory's first token; null: one
   * conversation, end to end. Left out: no trajectory branches.
   */
  segments?: readonly (readonly BranchSegment[] | null)[];
  /**
   * For each trajectory the turns that the policy sampled, in token order, as a tree by `parent`. Training provides
   * them; estimators made by `defineEstimator` always have them.
   */
  turns?: readonly (readonly EstimatorTurn[])[];
  /**
   * All tokens, which show which turns have equal histories (gigpo). Training provides them. Left out: histories are
   * unknown.
   */
  tokenIds?: ArrayLike<number>;
  /**
   * For each trajectory, the part of its last sampled token's reward that belongs to the whole episode: each path of
   * a trajectory that branches ends with it. Default 0; mt_grpo, which takes it as its outcome, uses the whole
   * reward then.
   */
  episodeRewards?: ArrayLike<number>;
  /** Critic's value before each token was sampled; present for estimators that need "values" (gae). */
  values?: ArrayLike<number>;
  /** Reward of a greedy rollout of each trajectory's prompt; present for estimators that need "baselines" (remax). */
  baselines?: ArrayLike<number>;
  /**
   * Log-probabilities by the policy that the update starts from; present for estimators that need "sumPiSquared"
   * (optimal_token_baseline).
   */
  oldLogprobs?: ArrayLike<number>;
  /**
   * Sum of the squared probabilities of the distribution that each token was drawn from; present with `oldLogprobs`.
   */
  sumPiSquared?: ArrayLike<number>;
  /**
   * Importance weights of the rollout correction; present with `oldLogprobs` if the correction computes weights.
   * Default 1.
   */
  rolloutIsWeights?: ArrayLike<number>;
  /** Parts of the reward, each with its weight; present for estimators that need "rewardParts" (gdpo). */
  rewardParts?: readonly RewardPart[];
  /**
   * Index of each trajectory's tree in its group; null: it belongs to none. Training provides them
   * (tree_grpo). Default: there are no trees.
   */
  trees?: readonly (number | null)[];
  /**
   * Measured values of each trajectory's turns, in order and without the last one; null: unknown. Present for
   * estimators that need "turnValues" (vine).
   */
  turnValues?: readonly (readonly (number | null)[])[];
  /** Data source of each trajectory (rae). Training provides them. Default: all have the same. */
  dataSources?: readonly string[];
  /** Weight of the earlier baseline when a return moves it (rae), from 0 to below 1. Default 0.95. */
  baselineDecay?: number;
  /**
   * The `state` that the estimator gave in the previous step (rae: each role's baseline). Training keeps it, and
   * stores it in checkpoints. Default: there was no such step.
   */
  state?: EstimatorState;
  /** Discount for each later sampled token (gigpo: for each later turn), 0 to 1. Default 1. */
  gamma?: number;
  /** GAE's lambda, which trades bias for variance, 0 to 1. Default 1. */
  lam?: number;
  /**
   * Divide advantages by the group's standard deviation (grpo, grpo_passk, gdpo, mt_grpo, tree_grpo, gigpo). Default
   * true; for gigpo false.
   */
  normalizeByStd?: boolean;
  /** Weight of a turn's own advantage relative to its episode's (gigpo, mt_grpo). Default 1. */
  turnWeight?: number;
}

/**
 * A segment of a trajectory's tokens, `[start, end)`, that follows the segment at index `parent`; -1: it begins a
 * conversation.
 */
export type BranchSegment = Pick<TrajectorySegment, "start" | "end" | "parent">;

/**
 * A sampled turn and its rewards. `start` and `end` count from its trajectory's first token, as in segments: its
 * tokens are `[offsets[i] + start, offsets[i] + end)` of the inputs.
 */
export interface EstimatorTurn extends SampledTurn {
  /**
   * Sum of the step rewards of the turn's tool calls, and of its scores by an interaction or the agent, before the
   * weights of `reward_model.aggregation` that turn them into a part of `tokenLevelRewards`. 0: none.
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

/** Finite numbers that an estimator keeps from step to step, under names of its own. */
export type EstimatorState = Readonly<Record<string, number>>;

/** Per-token arrays as long as the inputs', 0 where the mask is 0. */
export interface AdvantageOutputs {
  advantages: Float32Array;
  /** Regression target of a critic; for estimators without one, the return that the advantage was computed from. */
  returns: Float32Array;
  metrics: Record<string, number>;
  /** The `state` of the next step's inputs. Left out: it stays as it is. */
  state?: EstimatorState;
}

/**
 * Inputs that need a model, rollouts, a forward pass or config keys of their own; only computed for estimators that
 * name them.
 */
export const costlyInputs = ["values", "baselines", "sumPiSquared", "rewardParts", "turnValues"] as const;

export type CostlyInput = (typeof costlyInputs)[number];

/**
 * A pure function over the conversations that did not fail, with its needs and properties as fields.
 * `defineEstimator` makes one.
 */
export interface AdvantageEstimator {
  (inputs: AdvantageInputs): AdvantageOutputs;
  /**
   * "values": trains a critic beside the actor. "baselines": adds one greedy rollout per prompt. "sumPiSquared":
   * evaluates every trajectory before the advantages, for `oldLogprobs` and `sumPiSquared`. "rewardParts": provides
   * the values that `algorithm.gdpo_reward_keys` names. "turnValues": adds conversations that go on from the end of
   * each turn. Default none.
   */
  readonly needs?: readonly CostlyInput[];
  /**
   * True if a trajectory's advantage depends on the other rewards of its group. If failures leave fewer than two of
   * a group, there is nothing to compare, and the whole group is dropped; other estimators lose only the failed
   * conversations. Default false.
   */
  readonly comparesGroup?: boolean;
}
