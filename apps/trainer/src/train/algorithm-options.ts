import { defaultRolloutCorrection, type KlControllerOptions, type RolloutCorrectionOptions } from "@cria/algorithms";
import type { TrainConfig } from "../config/train-config.js";

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

export function makeRolloutCorrectionOptions({ rollout_correction: given }: AlgorithmConfig): RolloutCorrectionOptions {
  return {
    rolloutIs: given.rollout_is,
    rolloutIsThreshold: given.rollout_is_threshold,
    rolloutRs: given.rollout_rs,
    rolloutRsThreshold: given.rollout_rs_threshold ?? defaultRolloutCorrection.rolloutRsThreshold,
    rolloutRsThresholdLower: given.rollout_rs_threshold_lower,
    rolloutIsBatchNormalize: given.rollout_is_batch_normalize,
    rolloutTokenVetoThreshold: given.rollout_token_veto_threshold,
  };
}
