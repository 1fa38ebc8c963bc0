import { DataError } from "@cria/core";
import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { deviationOfGroup, fromOutcome, listGroups, sumRewards } from "./outcome.js";

/**
 * Pass@k advantages (Tang et al. 2025, arXiv:2503.19595): only the group's best earns, by how much it beats the second:
 * (r1 - r2) / (std + 1e-6), or r1 - r2 with `normalizeByStd: false`; everything else 0.
 * @throws DataError for a group of one, which has no second.
 */
export const estimateGrpoPassk: AdvantageEstimator = Object.assign(estimate, { comparesGroup: true });

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const rewards = sumRewards(inputs);
  const advantages = new Float64Array(rewards.length);
  for (const indices of listGroups(inputs.groups)) {
    if (indices.length < 2) {
      throw new DataError("is too small a group for pass@k", {
        code: "data/group-too-small",
        subject: `group ${inputs.groups[indices[0]!]}`,
        expected: "at least 2 rollouts of each prompt",
        received: "1",
        remedy: "raise actor_rollout_ref.rollout.n, or the row's own __rollout_n__",
      });
    }
    const [best, second] = [...indices].sort((a, b) => rewards[b]! - rewards[a]!);
    const scale = inputs.normalizeByStd === false ? 1 : 1 / (deviationOfGroup(rewards, indices) + 1e-6);
    advantages[best!] = (rewards[best!]! - rewards[second!]!) * scale;
  }
  return fromOutcome(advantages, inputs);
}
