import { parseRejectionRules, type RolloutCorrectionOptions } from "@cria/algorithms";
import { ConfigError } from "@cria/core";
import type { TrainConfig } from "../train-config.js";

/**
 * Reads the rollout correction. @param samplerDiffers true if a step trains on samples of earlier policies, or of
 * rounded keys and values. @throws ConfigError for unknown rejection rules, and for empty ranges.
 */
export function importCorrection(
  { rollout_correction: given }: Pick<TrainConfig["algorithm"], "rollout_correction">,
  samplerDiffers = false,
): RolloutCorrectionOptions {
  // Samples of another policy get token weights, unless another correction is set.
  const usual = samplerDiffers && !given.rollout_rs && !given.bypass_mode ? "token" : null;
  const { rollout_rs, rollout_rs_threshold, rollout_rs_threshold_lower } = given;
  const { lower, upper } = readWeightBounds(given.rollout_is_threshold);
  return {
    rolloutIs: given.rollout_is === "none" ? null : (given.rollout_is ?? usual),
    rolloutIsThreshold: upper,
    rolloutIsThresholdLower: lower,
    rolloutRs: rollout_rs ? parseRejectionRules(rollout_rs, rollout_rs_threshold, rollout_rs_threshold_lower) : [],
    rolloutIsBatchNormalize: given.rollout_is_batch_normalize,
    rolloutTokenVetoThreshold: given.rollout_token_veto_threshold,
  };
}

/** Reads one number, at which weights are cut off, or IcePop's "lower_upper". */
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
