import { clampLogRatio, clipRatio, isWithinClamp } from "./log-ratio.js";
import type { PolicyLoss } from "./policy-loss.js";

/**
 * PPO's clipped objective (Schulman et al. 2017, arXiv:1707.06347) with dual clip (Ye et al. 2019, arXiv:1912.09729):
 * max(-A r, -A clip(r, 1 - low, 1 + high)), and where A < 0 at most -A c.
 */
export const vanillaLoss: PolicyLoss = {
  vanishesWithoutAdvantage: true,
  evaluate({ logprobs, oldLogprobs, advantages }, { clipRatioLow, clipRatioHigh, clipRatioC }) {
    const n = logprobs.length;
    const losses = new Float64Array(n);
    const gradients = new Float64Array(n);
    // Mean over the mask: share of clipped tokens, of those at the dual clip's bound, and the k1 estimate of KL(old, new).
    const pg_clipfrac = new Float64Array(n);
    const pg_clipfrac_lower = new Float64Array(n);
    const ppo_kl = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const logRatio = clampLogRatio(logprobs[i]!, oldLogprobs[i]!);
      const ratio = Math.exp(logRatio);
      const advantage = advantages[i]!;
      const plain = -advantage * ratio;
      const clipped = -advantage * clipRatio(ratio, clipRatioLow, clipRatioHigh);
      let loss = Math.max(plain, clipped);
      // Where the clipped side wins the ratio is out of range (or both agree): no gradient, except in the tie.
      let gradient = plain >= clipped && isWithinClamp(logprobs[i]!, oldLogprobs[i]!) ? plain : 0;
      if (clipped > plain) pg_clipfrac[i] = 1;
      const bound = -advantage * clipRatioC;
      if (advantage < 0 && loss > bound) {
        loss = bound;
        gradient = 0;
        pg_clipfrac_lower[i] = 1;
      }
      losses[i] = loss;
      gradients[i] = gradient;
      ppo_kl[i] = -logRatio;
    }
    return { losses, gradients, metrics: { pg_clipfrac, pg_clipfrac_lower, ppo_kl } };
  },
};
