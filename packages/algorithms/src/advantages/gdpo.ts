import { ConfigError } from "@cria/core";
import { maskedWhiten } from "../masked.js";
import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { deviationOfGroup, listGroups, meanOfGroup, spreadOverTokens } from "./outcome.js";

/**
 * Group reward-decoupled normalisation (GDPO, Liu et al. 2026, arXiv:2601.05242): each part of the reward is
 * normalised within its group as in GRPO, (r - mean) / (std + 1e-6); the weighted sum is whitened over the sampled
 * tokens of the batch. Two combinations of rewards with the same sum keep different advantages. Reads only
 * `rewardParts`, no token-level rewards.
 * @throws ConfigError without `rewardParts`.
 */
export const estimateGdpo: AdvantageEstimator = Object.assign(estimate, {
  needs: ["rewardParts"] as const,
  comparesGroup: true,
});

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const { rewardParts, groups, responseMask } = inputs;
  if (!rewardParts?.length) {
    throw new ConfigError("needs the parts of the reward", {
      code: "config/needs-reward-parts",
      subject: 'algorithm.adv_estimator "gdpo"',
      expected: "rewardParts, at least one",
      received: "none",
      remedy: "name them in algorithm.gdpo_reward_keys: numbers that the reward function returns beside its score",
    });
  }
  const sums = new Float64Array(groups.length);
  for (const indices of listGroups(groups)) {
    for (const { values, weight } of rewardParts) {
      const mean = meanOfGroup(values, indices);
      const scale = inputs.normalizeByStd === false ? 1 : 1 / (deviationOfGroup(values, indices) + 1e-6);
      for (const i of indices) sums[i]! += weight * (values[i]! - mean) * scale;
    }
  }
  const advantages = Float32Array.from(maskedWhiten(spreadOverTokens(sums, inputs), responseMask));
  return { advantages, returns: advantages.slice(), metrics: {} };
}
