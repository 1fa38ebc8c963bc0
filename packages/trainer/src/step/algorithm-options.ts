import {
  type KlControllerOptions,
  type PolicyLossOptions,
  parseRejectionRules,
  type RolloutCorrectionOptions,
} from "@cria/algorithms";
import { ConfigError } from "@cria/core";
import type { TrainConfig } from "../config/train-config.js";
import type { Registries } from "../user-code/registries.js";

type AlgorithmConfig = TrainConfig["algorithm"];

/** Of the KL penalty in the reward. */
export function makeKlControllerOptions({ kl_ctrl }: AlgorithmConfig): KlControllerOptions {
  return {
    type: kl_ctrl.type,
    coefficient: kl_ctrl.kl_coef,
    targetKl: kl_ctrl.target_kl,
    horizon: kl_ctrl.horizon,
  };
}

/** @throws ConfigError for unknown rejections, and for bounds that leave nothing between them. */
export function makeRolloutCorrectionOptions({ rollout_correction: given }: AlgorithmConfig): RolloutCorrectionOptions {
  const { rollout_rs, rollout_rs_threshold, rollout_rs_threshold_lower } = given;
  const { lower, upper } = readWeightBounds(given.rollout_is_threshold);
  return {
    rolloutIs: given.rollout_is,
    rolloutIsThreshold: upper,
    rolloutIsThresholdLower: lower,
    rolloutRs: rollout_rs ? parseRejectionRules(rollout_rs, rollout_rs_threshold, rollout_rs_threshold_lower) : [],
    rolloutIsBatchNormalize: given.rollout_is_batch_normalize,
    rolloutTokenVetoThreshold: given.rollout_token_veto_threshold,
  };
}

/** One number, where weights are cut off, or IcePop's "lower_upper". */
function readWeightBounds(threshold: number | string): { lower: number | null; upper: number } {
  const numbers = String(threshold).split("_").map(Number);
  const [lower, upper] = numbers.length === 2 ? (numbers as [number, number]) : [null, numbers[0]!];
  if (upper > (lower ?? 0) && (lower ?? 0) >= 0) return { lower, upper };
  throw new ConfigError("does not say which weights stay", {
    code: "config/bad-value",
    subject: "algorithm.rollout_correction.rollout_is_threshold",
    expected: 'a number above 0, or "lower_upper" with 0 <= lower < upper',
    received: JSON.stringify(threshold),
  });
}

/**
 * The loss that a config describes. `clip_ratio` is the default of both sides. With bypass_mode the loss corrects for
 * the sampler: the ratio of ppo_clip is the importance weight, so it takes no further weights.
 * @param responseLength the longest response allowed: the default of `loss_scale_factor`.
 */
export function makePolicyLossOptions(
  config: Pick<TrainConfig, "actor_rollout_ref" | "algorithm">,
  responseLength: number,
): PolicyLossOptions {
  const { actor } = config.actor_rollout_ref;
  const { policy_loss: loss } = actor;
  const { bypass_mode, loss_type } = config.algorithm.rollout_correction;
  const correction = bypass_mode ? makeRolloutCorrectionOptions(config.algorithm) : null;
  return {
    lossMode: resolveLossMode(config),
    lossAggMode: actor.loss_agg_mode,
    lossScaleFactor: actor.loss_scale_factor ?? responseLength,
    clipRatioLow: actor.clip_ratio_low ?? actor.clip_ratio,
    clipRatioHigh: actor.clip_ratio_high ?? actor.clip_ratio,
    clipRatioC: actor.clip_ratio_c,
    clipCovRatio: loss.clip_cov_ratio,
    clipCovLb: loss.clip_cov_lb,
    clipCovUb: loss.clip_cov_ub,
    klCovRatio: loss.kl_cov_ratio,
    ppoKlCoef: loss.ppo_kl_coef,
    tauPos: actor.tau_pos,
    tauNeg: actor.tau_neg,
    droBeta: loss.dro_beta,
    entropyCoeff: actor.entropy_coeff,
    kl: actor.use_kl_loss ? { coefficient: actor.kl_loss_coef, type: actor.kl_loss_type } : null,
    currentCorrection: correction && loss_type === "ppo_clip" ? { ...correction, rolloutIs: null } : correction,
  };
}

/** Name of the registered loss; with bypass_mode `loss_type` may choose it. */
function resolveLossMode({
  actor_rollout_ref,
  algorithm,
}: Pick<TrainConfig, "actor_rollout_ref" | "algorithm">): string {
  const { loss_mode } = actor_rollout_ref.actor.policy_loss;
  const { bypass_mode, loss_type } = algorithm.rollout_correction;
  if (bypass_mode && loss_type === "reinforce") return "gpg";
  return loss_mode === "bypass_mode" ? "vanilla" : loss_mode;
}

/**
 * Whether trajectories without advantage take part in the update. They do if the config says so; if they have a
 * gradient through the KL term, the entropy term or the loss itself; or if the gradient of others depends on them:
 * rejection and veto take tokens out of the denominators, and normalised weights are divided by a mean over the batch.
 */
export function needsEveryTrajectory(config: TrainConfig, { policyLosses }: Pick<Registries, "policyLosses">): boolean {
  const { actor } = config.actor_rollout_ref;
  const { rollout_correction: correction } = config.algorithm;
  return (
    !actor.skip_zero_advantage ||
    actor.use_kl_loss ||
    actor.entropy_coeff !== 0 ||
    correction.rollout_rs !== null ||
    correction.rollout_token_veto_threshold !== null ||
    (correction.rollout_is !== null && correction.rollout_is_batch_normalize) ||
    !policyLosses.get(resolveLossMode(config)).vanishesWithoutAdvantage
  );
}
