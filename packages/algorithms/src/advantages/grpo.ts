import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { centerGroup, fromOutcome, listGroups, sumRewards } from "./outcome.js";

/**
 * Group-relative advantages (GRPO, Shao et al. 2024, arXiv:2402.03300): (r - mean) / (std + 1e-6) with the group's mean
 * and unbiased standard deviation; a group of one has mean 0 and std 1. `normalizeByStd: false` leaves r - mean, without
 * the bias towards easy and hard prompts (Dr. GRPO, Liu et al. 2025, arXiv:2503.20783).
 */
export const estimateGrpo: AdvantageEstimator = Object.assign(estimate, { comparesGroup: true });

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const rewards = sumRewards(inputs);
  for (const indices of listGroups(inputs.groups)) centerGroup(rewards, indices, inputs.normalizeByStd !== false);
  return fromOutcome(rewards, inputs);
}
