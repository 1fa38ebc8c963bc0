import { ConfigError } from "@cria/core";
import type { AdvantageEstimator, AdvantageInputs, AdvantageOutputs } from "./advantage-estimator.js";
import { discountReturns } from "./discounted-returns.js";

/**
 * ReMax (Li et al. 2023, arXiv:2310.10505): the undiscounted return of each token minus the reward of a greedy rollout
 * of the same prompt. A prompt whose greedy rollout failed has no baseline: the trainer drops its group.
 * @throws ConfigError without `baselines`.
 */
export const estimateRemax: AdvantageEstimator = Object.assign(estimate, { needs: ["baselines"] as const });

function estimate(inputs: AdvantageInputs): AdvantageOutputs {
  const { responseMask, offsets, baselines } = inputs;
  if (!baselines) {
    throw new ConfigError("needs the reward of a greedy rollout of each prompt", {
      code: "config/needs-baseline",
      subject: 'algorithm.adv_estimator "remax"',
      expected: "baselines, one for each trajectory",
      received: "none",
    });
  }
  const returns = Float32Array.from(discountReturns(inputs, 1));
  const advantages = returns.slice();
  for (let i = 0; i + 1 < offsets.length; i++)
    for (let t = offsets[i]!; t < offsets[i + 1]!; t++) if (responseMask[t]) advantages[t]! -= baselines[i]!;
  return { advantages, returns, metrics: {} };
}
