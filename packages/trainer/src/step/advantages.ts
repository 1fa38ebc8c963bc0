import {
  type AdvantageEstimator,
  type AdvantageInputs,
  type AdvantageOutputs,
  advantageEstimators,
  type EstimatorName,
} from "@cria/algorithms";
import { listTurns } from "@cria/algorithms/internal";
import { ConfigError, type Trajectory } from "@cria/core";
import { type ChecksOf, checkOptions, optionChecks } from "@cria/core/internal";
import { joinTokens, layOutTokens } from "../policy/flat-tokens.js";
import type { Advantages, Groups } from "./groups.js";

/**
 * Options of estimators. `gamma`: discount of rewards-to-go, per token, or per turn for gigpo; in [0, 1], default 1.
 * `normalizeByStd`: true makes grpo, grpoPassk, mtGrpo, treeGrpo and gigpo divide by the group's standard deviation;
 * default true, false for gigpo. `turnWeight`: weight of a turn's advantage relative to its episode's in gigpo and
 * mtGrpo, default 1. `baselineDecay`: of rae's baselines, default 0.95. `state`: the `state` of the advantages of the
 * step before.
 */
export interface AdvantageOptions
  extends Pick<AdvantageInputs, "gamma" | "normalizeByStd" | "turnWeight" | "baselineDecay" | "state"> {}

const { number } = optionChecks;

const advantageChecks: ChecksOf<Required<AdvantageOptions>> = {
  gamma: number,
  normalizeByStd: optionChecks.flag,
  turnWeight: number,
  baselineDecay: number,
  state: optionChecks.object,
};

/** The result if failures leave no trajectory; no estimator is called then. */
const nothing: AdvantageOutputs = { advantages: new Float32Array(0), returns: new Float32Array(0), metrics: {} };

/**
 * Applies an estimator to the concatenated tokens of trajectories.
 * @param given further inputs that the estimator needs; `tokenLevelRewards` replaces the trajectories' own.
 */
export function estimateAdvantages(
  estimator: AdvantageEstimator,
  trajectories: readonly Trajectory[],
  given: Partial<AdvantageInputs> = {},
): AdvantageOutputs {
  if (trajectories.length === 0) return nothing;
  const offsets = layOutTokens(trajectories);
  const join = (arrays: readonly ArrayLike<number>[]) => joinTokens(offsets, arrays);
  return estimator({
    tokenLevelRewards: given.tokenLevelRewards ?? join(trajectories.map((t) => t.rewards.tokenLevel)),
    responseMask: join(trajectories.map((t) => t.responseMask)),
    offsets,
    groups: trajectories.map((t) => t.uid),
    dataSources: trajectories.map((t) => t.dataSource),
    trees: trajectories.map(({ branch }) => branch?.tree ?? null),
    turns: trajectories.map(listTurns),
    tokenIds: join(trajectories.map((t) => t.tokenIds)),
    ...(trajectories.some((t) => t.segments) ? { segments: trajectories.map((t) => t.segments ?? null) } : {}),
    episodeRewards: trajectories.map(({ rewards }) => rewards.outcome + rewards.length),
    ...given,
  });
}

/** Splits a flat array into one subarray per trajectory. */
export function cutTokens(trajectories: readonly Trajectory[], flat: Float32Array): Float32Array[] {
  const offsets = layOutTokens(trajectories);
  return trajectories.map((_, i) => flat.subarray(offsets[i]!, offsets[i + 1]!));
}

/**
 * Computes advantages of groups with an estimator that needs only rewards: a registered one or your own. Failed
 * trajectories are left out.
 * @throws ConfigError for an unknown name, an unknown or wrong option, or an estimator that needs more than rewards.
 */
export function estimate(
  estimator: EstimatorName | AdvantageEstimator,
  groups: Groups,
  options: AdvantageOptions = {},
): Advantages {
  return estimateFor("advantages.of", estimator, groups, options);
}

/** Implements `estimate`. @param call name of the called function, for errors. */
function estimateFor(
  call: string,
  estimator: EstimatorName | AdvantageEstimator,
  groups: Groups,
  options: AdvantageOptions,
): Advantages {
  checkOptions(call, options, advantageChecks);
  const resolved = advantageEstimators.resolve(estimator);
  if (resolved.needs?.length) {
    throw new ConfigError("needs more than rewards", {
      code: "config/costly-estimator",
      subject: `advantages: ${typeof estimator === "string" ? estimator : estimator.name}`,
      expected: "an estimator without `needs`",
      received: `needs: ${resolved.needs.join(", ")}`,
      remedy:
        "use train({ config: { algorithm: { adv_estimator } } }), which makes them, or call the estimator yourself",
    });
  }
  const { indices } = groups.leaveOutFailures(resolved);
  const trajectories = indices.map((i) => groups.trajectories[i]!);
  const { advantages, metrics, state = options.state } = estimateAdvantages(resolved, trajectories, options);
  return { indices, advantages: cutTokens(trajectories, advantages), metrics, ...(state ? { state } : {}) };
}

/** The estimator of a name, as `advantages` has it under `key`. */
const by =
  (key: string, name: string) =>
  (groups: Groups, options: AdvantageOptions = {}) =>
    estimateFor(`advantages.${key}`, name, groups, options);

/**
 * Advantage estimators over groups: `groups.toBatch(advantages.grpo(groups))`. `train` alone has those that need a
 * critic or further rollouts.
 */
export const advantages = {
  /**
   * Reward minus the group's mean, divided by its standard deviation unless `normalizeByStd` is false
   * (arXiv:2402.03300).
   */
  grpo: by("grpo", "grpo"),
  /** Reward minus the mean of the group's other rewards (arXiv:2402.14740). */
  rloo: by("rloo", "rloo"),
  /** Reward-to-go, whitened over the batch (arXiv:2501.03262). */
  reinforcePlusPlus: by("reinforcePlusPlus", "reinforce_plus_plus"),
  /** Reward minus the group's mean, whitened over the batch. */
  reinforcePlusPlusBaseline: by("reinforcePlusPlusBaseline", "reinforce_plus_plus_baseline"),
  /** Reward minus the length-weighted mean of the group (arXiv:2505.23585). */
  opo: by("opo", "opo"),
  /** Only the group's best sample has an advantage: its lead over the second (arXiv:2503.19595). */
  grpoPassk: by("grpoPassk", "grpo_passk"),
  /** Reward minus the group's mean, scaled by the share of groups with spread (arXiv:2504.02546). */
  gpg: by("gpg", "gpg"),
  /**
   * Reward minus the group's mean, plus `turnWeight` times the turn-level advantage: the turn's return minus the mean
   * return of the group's turns in the same state (GiGPO, arXiv:2505.10978).
   */
  gigpo: by("gigpo", "gigpo"),
  /**
   * The outcome's advantage by GRPO, plus `turnWeight` times the turn-level advantage: the turn's own rewards compared
   * with those of the group's turns with the same number (MT-GRPO, arXiv:2505.11821). Outcome rewards that
   * `aggregation.strategy` spreads over the tokens cannot be distinguished from turn rewards.
   */
  mtGrpo: by("mtGrpo", "mt_grpo"),
  /** Reward minus the group's mean, divided by that mean; 0 where it is 0 or less (MaxRL, arXiv:2602.02710). */
  maxRl: by("maxRl", "max_rl"),
  /**
   * For each role that the policy plays, its reward minus the moving average of that role's rewards (RAE,
   * arXiv:2506.24119): `advantages.rae(groups, { state: previous.state })`.
   */
  rae: by("rae", "rae"),
  /** 1 for the group's best conversation, if it earns anything; 0 for all others (RAFT, arXiv:2304.06767). */
  raft: by("raft", "raft"),
  /**
   * For rollouts that are grown as trees: the reward compared with all rewards of the prompt, plus compared with those
   * of the same tree (Tree-GRPO, arXiv:2509.21240).
   */
  treeGrpo: by("treeGrpo", "tree_grpo"),
  /** Any registered estimator, or your own. */
  of: estimate,
};
