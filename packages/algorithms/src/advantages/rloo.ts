import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { fromOutcome, listGroups, meanOfGroup, sumRewards } from "./outcome.js";

/**
 * REINFORCE leave-one-out (Ahmadian et al. 2024, arXiv:2402.14740): r minus the mean of the group's others, which is
 * n/(n-1) (r - mean). A group of one keeps its reward.
 */
export const estimateRloo: AdvantageEstimator = Object.assign(estimate, { comparesGroup: true });

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const rewards = sumRewards(inputs);
  for (const indices of listGroups(inputs.groups)) {
    const n = indices.length;
    if (n < 2) continue;
    const mean = meanOfGroup(rewards, indices);
    for (const i of indices) rewards[i] = (n / (n - 1)) * (rewards[i]! - mean);
  }
  return fromOutcome(rewards, inputs);
}
