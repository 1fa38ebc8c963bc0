import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { countSampled, fromOutcome, listGroups, sumRewards } from "./outcome.js";

/**
 * Optimal reward baseline (OPO, Hao et al. 2025, arXiv:2505.23585): r minus the group's mean weighted by response length,
 * which minimises the gradient's variance when its norm grows with length. A group of one has baseline 0.
 */
export const estimateOpo: AdvantageEstimator = Object.assign(estimate, { comparesGroup: true });

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const rewards = sumRewards(inputs);
  const lengths = countSampled(inputs);
  for (const indices of listGroups(inputs.groups)) {
    const total = indices.reduce((sum, i) => sum + lengths[i]!, 0);
    if (indices.length < 2 || total === 0) continue;
    // Computed relative to the first reward, so that equal rewards give advantages of exactly 0.
    const first = rewards[indices[0]!]!;
    const baseline = first + indices.reduce((sum, i) => sum + lengths[i]! * (rewards[i]! - first), 0) / total;
    for (const i of indices) rewards[i]! -= baseline;
  }
  return fromOutcome(rewards, inputs);
}
