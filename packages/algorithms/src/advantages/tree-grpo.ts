import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { centerGroup, fromOutcome, listGroups, sumRewards } from "./outcome.js";

/**
 * Group-relative advantages of tree rollouts (Tree-GRPO, Ji et al. 2025, arXiv:2509.21240). A trajectory is the path to
 * one leaf of a tree, with the leaf's reward r. Its advantage compares it with all leaves of the prompt and with those
 * of its own tree:
 *
 *     A = (r - mean) / (std + 1e-6) + (r - mean_tree) / (std_tree + 1e-6)
 *
 * with unbiased standard deviations; `normalizeByStd: false` leaves them out. Leaves of one tree differ from the turn
 * on where they part, so the second term is the turns' own. It is 0 for a tree of one leaf: without trees this is GRPO.
 * Each path learns all of its tokens: tokens that leaves share are learned with the advantage of each.
 */
export const estimateTreeGrpo: AdvantageEstimator = Object.assign(estimate, { comparesGroup: true });

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const { groups, trees, normalizeByStd = true } = inputs;
  const within = sumRewards(inputs);
  const advantages = within.slice();
  for (const indices of listGroups(groups)) centerGroup(advantages, indices, normalizeByStd);
  for (const indices of listGroups(groups.map((group, i) => JSON.stringify([group, trees?.[i] ?? `alone ${i}`])))) {
    if (indices.length < 2) continue;
    centerGroup(within, indices, normalizeByStd);
    for (const i of indices) advantages[i]! += within[i]!;
  }
  return fromOutcome(advantages, inputs);
}
