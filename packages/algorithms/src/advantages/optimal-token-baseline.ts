import { ConfigError } from "@cria/core";
import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { discountReturns } from "./discounted-returns.js";
import { listGroups } from "./outcome.js";

/**
 * Optimal token baseline (Li et al. 2026, arXiv:2602.07078): G_t - B_t, where G_t is the undiscounted reward from
 * token t on, and B_t the baseline that minimises the variance of the policy gradient, over the trajectories of the
 * group that have a t-th token:
 *
 *     B_t = sum_i W_t G_t / sum_i W_t,    W_t = sum over j <= t of w_j^2 (1 - 2 p_j + sum_v p_jv^2)
 *
 * W_t is the accumulated squared norm of the gradient by logits (the logit-gradient proxy); p_j is the probability
 * of the sampled token, w_j the weight of the rollout correction (1 without one). Only sampled tokens are counted,
 * not the text of tools and users in between, so that single-turn and tool-integrated conversations have one
 * definition (optimal_token_baseline, tir_optimal_token_baseline). Beyond the second-longest trajectory, and in a
 * group of one, the baseline is 0: a token must not be compared with itself. In a trajectory that branches, W and
 * the count continue along each path from the shared tokens; all tokens at one place enter its baseline, each once.
 * @throws ConfigError without `oldLogprobs` and `sumPiSquared`.
 */
export const estimateOptimalTokenBaseline: AdvantageEstimator = Object.assign(estimate, {
  needs: ["sumPiSquared"] as const,
  comparesGroup: true,
});

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const { responseMask, offsets, segments, oldLogprobs, sumPiSquared, rolloutIsWeights } = inputs;
  if (!oldLogprobs || !sumPiSquared) {
    throw new ConfigError("needs the probabilities of each token", {
      code: "config/needs-probabilities",
      subject: 'algorithm.adv_estimator "optimal_token_baseline"',
      expected: "oldLogprobs and sumPiSquared",
      received: "none",
    });
  }
  const returns = discountReturns(inputs, 1);
  const advantages = new Float32Array(responseMask.length);
  /** For each trajectory and each place along its paths: the sampled tokens at that place, and their W. */
  const sampled = Array.from({ length: offsets.length - 1 }, (_, i) => {
    const places: { at: number; energy: number }[][] = [];
    const parts = segments?.[i] ?? [{ start: 0, end: offsets[i + 1]! - offsets[i]!, parent: -1 }];
    const ends: { energy: number; count: number }[] = [];
    for (const { start, end, parent } of parts) {
      let { energy, count } = ends[parent] ?? { energy: 0, count: 0 };
      for (let t = offsets[i]! + start; t < offsets[i]! + end; t++) {
        if (!responseMask[t]) continue;
        const weight = rolloutIsWeights?.[t] ?? 1;
        energy += weight * weight * (1 - 2 * Math.exp(oldLogprobs[t]!) + sumPiSquared[t]!);
        if (count === places.length) places.push([]);
        places[count++]!.push({ at: t, energy });
      }
      ends.push({ energy, count });
    }
    return places;
  });
  for (const indices of listGroups(inputs.groups)) {
    const longest = indices.reduce((most, i) => Math.max(most, sampled[i]!.length), 0);
    for (let k = 0; k < longest; k++) {
      const members = indices.map((i) => sampled[i]![k] ?? []).filter((tokens) => tokens.length > 0);
      const tokens = members.flat();
      const total = tokens.reduce((sum, { energy }) => sum + energy, 0);
      // Computed relative to the first return, so that equal returns give advantages of exactly 0. If the policy was
      // certain of every token so far, W is 0, and there is no baseline.
      const first = tokens.length > 0 ? returns[tokens[0]!.at]! : 0;
      const weighted = tokens.reduce((sum, { at, energy }) => sum + energy * (returns[at]! - first), 0);
      const baseline = members.length > 1 && total > 0 ? first + weighted / total : 0;
      for (const { at } of tokens) advantages[at] = returns[at]! - baseline;
    }
  }
  return { advantages, returns: Float32Array.from(returns), metrics: {} };
}
