import { evaluateTokens } from "./evaluate-tokens.js";
import { clipRatio } from "./log-ratio.js";
import type { PolicyLoss } from "./policy-loss.js";

/**
 * Clipped importance-sampling weights (CISPO, MiniMax 2025, arXiv:2506.13585): -sg(clip(r, 1 - low, 1 + high)) A logprob.
 * The weight is clipped, not the token: every token keeps a gradient, -clip(r) A.
 */
export const cispoLoss: PolicyLoss = {
  vanishesWithoutAdvantage: true,
  evaluate: (inputs, { clipRatioLow, clipRatioHigh }) =>
    evaluateTokens(inputs, ["pg_clipfrac"], ({ logprob, ratio, advantage }) => {
      const clipped = clipRatio(ratio, clipRatioLow, clipRatioHigh);
      const gradient = -clipped * advantage;
      return { loss: gradient * logprob, gradient, pg_clipfrac: clipped === ratio ? 0 : 1 };
    }),
};
