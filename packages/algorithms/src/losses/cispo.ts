import { clampLogRatio, clipRatio } from "./log-ratio.js";
import type { PolicyLoss } from "./policy-loss.js";

/**
 * Clipped importance-sampling weights (CISPO, MiniMax 2025, arXiv:2506.13585): -sg(clip(r, 1 - low, 1 + high)) A logprob.
 * The weight is clipped, not the token: every token keeps a gradient, -clip(r) A.
 */
export const cispoLoss: PolicyLoss = {
  vanishesWithoutAdvantage: true,
  evaluate({ logprobs, oldLogprobs, advantages }, { clipRatioLow, clipRatioHigh }) {
    const n = logprobs.length;
    const losses = new Float64Array(n);
    const gradients = new Float64Array(n);
    const pg_clipfrac = new Float64Array(n);
    const ppo_kl = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const logRatio = clampLogRatio(logprobs[i]!, oldLogprobs[i]!);
      const ratio = Math.exp(logRatio);
      const clipped = clipRatio(ratio, clipRatioLow, clipRatioHigh);
      gradients[i] = -clipped * advantages[i]!;
      losses[i] = gradients[i]! * logprobs[i]!;
      pg_clipfrac[i] = clipped === ratio ? 0 : 1;
      ppo_kl[i] = -logRatio;
    }
    return { losses, gradients, metrics: { pg_clipfrac, ppo_kl } };
  },
};
