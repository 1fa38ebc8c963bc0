import { clampLogRatio, isWithinClamp } from "./log-ratio.js";
import type { PolicyLoss } from "./policy-loss.js";

/**
 * Soft adaptive policy optimisation (Gao et al. 2025, arXiv:2511.20347): a gate instead of clipping,
 * -A sigmoid(tau (r - 1)) 4 / tau, tau = tauPos where A > 0, else tauNeg. At r = 1 its gradient is that of -A r; away
 * from it the gate closes smoothly. Always seq-mean-token-mean.
 */
export const sapoLoss: PolicyLoss = {
  aggregation: "seq-mean-token-mean",
  vanishesWithoutAdvantage: true,
  evaluate({ logprobs, oldLogprobs, advantages }, { tauPos, tauNeg }) {
    const n = logprobs.length;
    const losses = new Float64Array(n);
    const gradients = new Float64Array(n);
    const ppo_kl = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const logRatio = clampLogRatio(logprobs[i]!, oldLogprobs[i]!);
      const ratio = Math.exp(logRatio);
      const advantage = advantages[i]!;
      const tau = advantage > 0 ? tauPos : tauNeg;
      const gate = 1 / (1 + Math.exp(-tau * (ratio - 1)));
      losses[i] = (-advantage * gate * 4) / tau;
      if (isWithinClamp(logprobs[i]!, oldLogprobs[i]!)) gradients[i] = -advantage * 4 * gate * (1 - gate) * ratio;
      ppo_kl[i] = -logRatio;
    }
    return { losses, gradients, metrics: { ppo_kl } };
  },
};
