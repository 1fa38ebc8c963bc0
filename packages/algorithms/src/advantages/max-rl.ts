import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { fromOutcome, listGroups, meanOfGroup, sumRewards } from "./outcome.js";

/**
 * Maximum likelihood reinforcement learning (MaxRL, Tajwar et al. 2026, arXiv:2602.02710): (r - mean) / mean, and 0
 * for a group with a mean of 0 or less. For rewards of 0 and 1 the mean is the group's pass rate, and the gradient
 * is that of its logarithm: a rare success counts more than a common one. Meant for rewards of 0 or more. A group of
 * one has advantage 0.
 */
export const estimateMaxRl: AdvantageEstimator = Object.assign(estimate, { comparesGroup: true });

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const rewards = sumRewards(inputs);
  for (const indices of listGroups(inputs.groups)) {
    const mean = meanOfGroup(rewards, indices);
    for (const i of indices) rewards[i] = mean > 0 ? (rewards[i]! - mean) / mean : 0;
  }
  return fromOutcome(rewards, inputs);
}
