import { clampLogRatio } from "./log-ratio.js";
import type { PolicyLoss } from "./policy-loss.js";

/** The plain policy gradient (Williams 1992; GPG, Chu et al. 2025, arXiv:2504.02546): -A logprob, no ratio. */
export const gpgLoss: PolicyLoss = {
  vanishesWithoutAdvantage: true,
  evaluate({ logprobs, oldLogprobs, advantages }) {
    return {
      losses: Float64Array.from(logprobs, (logprob, i) => -advantages[i]! * logprob),
      gradients: Float64Array.from(advantages, (advantage) => -advantage),
      metrics: { ppo_kl: Float64Array.from(logprobs, (logprob, i) => -clampLogRatio(logprob, oldLogprobs[i]!)) },
    };
  },
};
