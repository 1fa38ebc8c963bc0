import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { fromOutcome, listGroups, meanOfGroup, sumRewards } from "./outcome.js";

/**
 * Group policy gradient (GPG, Chu et al. 2025, arXiv:2504.02546): (batch / number of non-zero rewards)(r - mean); the
 * factor makes up for rollouts that earn nothing. A group of one has baseline 0.
 */
export const estimateGpg: AdvantageEstimator = Object.assign(estimate, { comparesGroup: true });

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const rewards = sumRewards(inputs);
  const nonZero = rewards.reduce((count, reward) => count + (reward !== 0 ? 1 : 0), 0);
  const scale = rewards.length / Math.max(1, nonZero);
  for (const indices of listGroups(inputs.groups)) {
    const mean = meanOfGroup(rewards, indices);
    for (const i of indices) rewards[i] = scale * (rewards[i]! - mean);
  }
  return fromOutcome(rewards, inputs);
}
