import { evaluateTokens } from "./evaluate-tokens.js";
import { clipRatio } from "./log-ratio.js";
import type { PolicyLoss } from "./policy-loss.js";

/**
 * PPO's clipped objective (Schulman et al. 2017, arXiv:1707.06347) with dual clip (Ye et al. 2019, arXiv:1912.09729):
 * max(-A r, -A clip(r, 1 - low, 1 + high)), and at most -A c if A < 0.
 */
export const vanillaLoss: PolicyLoss = {
  vanishesWithoutAdvantage: true,
  evaluate: (inputs, { clipRatioLow, clipRatioHigh, clipRatioC }) =>
    // Mean over the mask: share of clipped tokens, and of those at the dual clip's bound.
    evaluateTokens(inputs, ["pg_clipfrac", "pg_clipfrac_lower"], ({ ratio, isWithinClamp, advantage }) => {
      const plain = -advantage * ratio;
      const clipped = -advantage * clipRatio(ratio, clipRatioLow, clipRatioHigh);
      const pg_clipfrac = clipped > plain ? 1 : 0;
      const loss = Math.max(plain, clipped);
      const bound = -advantage * clipRatioC;
      if (advantage < 0 && loss > bound) return { loss: bound, gradient: 0, pg_clipfrac, pg_clipfrac_lower: 1 };
      // If the clipped side is larger, the ratio is out of range (or both are equal): no gradient, except in the tie.
      const gradient = plain >= clipped && isWithinClamp ? plain : 0;
      return { loss, gradient, pg_clipfrac, pg_clipfrac_lower: 0 };
    }),
};
