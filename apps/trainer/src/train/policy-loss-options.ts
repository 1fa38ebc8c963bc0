import { type PolicyLossOptions, policyLosses } from "@cria/algorithms";
import type { TrainConfig } from "../config/train-config.js";

/**
 * The loss that a config's `actor` describes. `clip_ratio` stands for both sides unless they are set.
 * @param responseLength the longest response allowed: the default of `loss_scale_factor`.
 */
export function makePolicyLossOptions(
  actor: TrainConfig["actor_rollout_ref"]["actor"],
  responseLength: number,
): PolicyLossOptions {
  const { policy_loss: loss } = actor;
  return {
    lossMode: loss.loss_mode,
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
    tauPos: loss.tau_pos,
    tauNeg: loss.tau_neg,
    entropyCoeff: actor.entropy_coeff,
    kl: actor.use_kl_loss ? { coefficient: actor.kl_loss_coef, type: actor.kl_loss_type } : null,
  };
}

/**
 * Whether a trajectory without advantage has a gradient or a say all the same: through the KL or entropy term, through the
 * loss itself, or because rejection must look at its tokens.
 */
export function needsEveryTrajectory(config: TrainConfig): boolean {
  const { actor } = config.actor_rollout_ref;
  return (
    actor.use_kl_loss ||
    actor.entropy_coeff !== 0 ||
    config.algorithm.rollout_correction.rollout_rs !== null ||
    !policyLosses.get(actor.policy_loss.loss_mode).vanishesWithoutAdvantage
  );
}
