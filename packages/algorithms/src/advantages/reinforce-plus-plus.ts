import { maskedWhiten } from "../masked.js";
import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { discountReturns } from "./discounted-returns.js";
import { listGroups, meanOfGroup, spreadOverTokens, sumRewards } from "./outcome.js";

/** REINFORCE++ (Hu et al. 2025, arXiv:2501.03262): the discounted return of each token, whitened over the mask. */
export const estimateReinforcePlusPlus: AdvantageEstimator = (inputs) => {
  const returns = discountReturns(inputs, inputs.gamma ?? 1);
  return {
    advantages: Float32Array.from(maskedWhiten(returns, inputs.responseMask)),
    returns: Float32Array.from(returns),
    metrics: {},
  };
};

/**
 * REINFORCE++ with the group's mean as baseline (arXiv:2501.03262): r - mean on every token, whitened over the mask. A
 * group of one has baseline 0.
 */
export const estimateReinforcePlusPlusBaseline: AdvantageEstimator = Object.assign(estimateWithBaseline, {
  comparesGroup: true,
});

function estimateWithBaseline(inputs: AdvantageInputs): AdvantageOutputs {
  const rewards = sumRewards(inputs);
  for (const indices of listGroups(inputs.groups)) {
    const mean = meanOfGroup(rewards, indices);
    for (const i of indices) rewards[i]! -= mean;
  }
  const advantages = Float32Array.from(maskedWhiten(spreadOverTokens(rewards, inputs), inputs.responseMask));
  return { advantages, returns: advantages.slice(), metrics: {} };
}
