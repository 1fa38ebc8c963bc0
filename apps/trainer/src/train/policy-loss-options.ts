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
    tauPos: actor.tau_pos,
    tauNeg: actor.tau_neg,
    entropyCoeff: actor.entropy_coeff,
    kl: actor.use_kl_loss ? { coefficient: actor.kl_loss_coef, type: actor.kl_loss_type } : null,
  };
}

/**
 * Whether trajectories without advantage take part in the update: because the config says so, because they have a gradient
 * all the same (through the KL or entropy term, or through the loss itself), or because the others' depends on them:
 * rejection and veto take tokens out of the denominators, and normalised weights are divided by a mean over the batch.
 */
export function needsEveryTrajectory(config: TrainConfig): boolean {
  const { actor } = config.actor_rollout_ref;
  const { rollout_correction: correction } = config.algorithm;
  return (
    !actor.skip_zero_advantage ||
    actor.use_kl_loss ||
    actor.entropy_coeff !== 0 ||
    correction.rollout_rs !== null ||
    correction.rollout_token_veto_threshold !== null ||
    (correction.rollout_is !== null && correction.rollout_is_batch_normalize) ||
    !policyLosses.get(actor.policy_loss.loss_mode).vanishesWithoutAdvantage
  );
}
