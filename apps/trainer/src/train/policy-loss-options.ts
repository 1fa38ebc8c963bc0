import type { PolicyLossOptions } from "@cria/algorithms";
import type { TrainConfig } from "../config/train-config.js";

/** The loss that a config's `actor` describes. `clip_ratio` stands for both sides unless they are set. */
export function makePolicyLossOptions(actor: TrainConfig["actor_rollout_ref"]["actor"]): PolicyLossOptions {
  return {
    lossMode: actor.policy_loss.loss_mode,
    lossAggMode: actor.loss_agg_mode,
    clipRatioLow: actor.clip_ratio_low ?? actor.clip_ratio,
    clipRatioHigh: actor.clip_ratio_high ?? actor.clip_ratio,
    clipRatioC: actor.clip_ratio_c,
    entropyCoeff: actor.entropy_coeff,
    kl: actor.use_kl_loss ? { coefficient: actor.kl_loss_coef, type: actor.kl_loss_type } : null,
  };
}
