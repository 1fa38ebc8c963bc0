import { defaultRolloutCorrection, type KlControllerOptions, type RolloutCorrectionOptions } from "@cria/algorithms";
import { ConfigError } from "@cria/core";
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

const rejections = { token_k1: "token", seq_sum_k1: "sequence", seq_mean_k1: "geometric" } as const;

/** @throws ConfigError for bounds that leave nothing between them. */
export function makeRolloutCorrectionOptions({ rollout_correction: given }: AlgorithmConfig): RolloutCorrectionOptions {
  const { upper, lower } = readRejectionBounds(given);
  return {
    rolloutIs: given.rollout_is,
    rolloutIsThreshold: given.rollout_is_threshold,
    rolloutRs: given.rollout_rs && rejections[given.rollout_rs],
    rolloutRsThreshold: upper,
    rolloutRsThresholdLower: lower,
    rolloutIsBatchNormalize: given.rollout_is_batch_normalize,
    rolloutTokenVetoThreshold: given.rollout_token_veto_threshold,
  };
}

/**
 * Bounds of the ratio training graph / sampler. A text "lower_upper" bounds the inverse of it: each bound is inverted, and
 * the two change places.
 */
function readRejectionBounds(given: AlgorithmConfig["rollout_correction"]): { upper: number; lower: number | null } {
  const { rollout_rs_threshold: threshold, rollout_rs_threshold_lower: lower } = given;
  if (typeof threshold !== "string") return { upper: threshold ?? defaultRolloutCorrection.rolloutRsThreshold, lower };
  const [least, most] = threshold.split("_").map(Number) as [number, number];
  if (lower === null && least > 0 && least < most) return { upper: 1 / least, lower: 1 / most };
  throw new ConfigError("does not say which ratios stay", {
    code: "config/bad-value",
    subject: "algorithm.rollout_correction.rollout_rs_threshold",
    expected: '"lower_upper" with 0 < lower < upper, and rollout_rs_threshold_lower null',
    received: `"${threshold}" and ${lower}`,
  });
}
