import { evaluateTokens } from "./evaluate-tokens.js";
import type { PolicyLoss } from "./policy-loss.js";

/**
 * Soft adaptive policy optimisation (Gao et al. 2025, arXiv:2511.20347): a gate instead of clipping, -A sigmoid(tau (r
 * - 1)) 4 / tau, tau = tauPos if A > 0, else tauNeg. At r = 1 its gradient is that of -A r; further away the gate
 * closes smoothly. Always seq-mean-token-mean.
 */
export const sapoLoss: PolicyLoss = {
  aggregation: "seq-mean-token-mean",
  ofRatios: ["tauPos", "tauNeg"],
  vanishesWithoutAdvantage: true,
  evaluate: (inputs, { tauPos, tauNeg }) =>
    evaluateTokens(inputs, [], ({ ratio, isWithinClamp, advantage }) => {
      const tau = advantage > 0 ? tauPos : tauNeg;
      const gate = 1 / (1 + Math.exp(-tau * (ratio - 1)));
      const loss = (-advantage * gate * 4) / tau;
      return { loss, gradient: isWithinClamp ? -advantage * 4 * gate * (1 - gate) * ratio : 0 };
    }),
};
