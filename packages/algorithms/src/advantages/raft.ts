import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { fromOutcome, listGroups, sumRewards } from "./outcome.js";

/**
 * Reward ranked fine-tuning (RAFT, Dong et al. 2023, arXiv:2304.06767): a group's best conversation has advantage 1, the
 * first of several that are equally good; all others have 0, and so have groups whose best reward is 0 or less. With the
 * loss `gpg` a step is supervised fine-tuning on what the policy did best.
 */
export const estimateRaft: AdvantageEstimator = (inputs: AdvantageInputs): AdvantageOutputs => {
  const rewards = sumRewards(inputs);
  const advantages = new Float64Array(rewards.length);
  for (const indices of listGroups(inputs.groups)) {
    const best = indices.reduce((best, i) => (rewards[i]! > rewards[best]! ? i : best));
    if (rewards[best]! > 0) advantages[best] = 1;
  }
  return fromOutcome(advantages, inputs);
};
