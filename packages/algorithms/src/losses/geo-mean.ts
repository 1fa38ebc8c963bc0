import { clampLogRatio, isWithinClamp } from "./log-ratio.js";
import type { PolicyLoss } from "./policy-loss.js";

/**
 * Geometric-mean policy optimisation (GMPO, Zhao et al. 2025, arXiv:2507.20673). For a sequence, with s = sign(A):
 * l = s min(s log r, s clamp(log r, -low, high)), loss -(mean A) exp(mean of l over tokens); mean over sequences.
 * The clip applies to log-ratios: clipRatioLow and clipRatioHigh bound log r, not r.
 */
export const geoMeanLoss: PolicyLoss = {
  aggregation: "seq-mean-token-mean",
  correction: "sequence",
  vanishesWithoutAdvantage: true,
  evaluate({ logprobs, oldLogprobs, advantages, offsets }, { clipRatioLow, clipRatioHigh }) {
    const n = logprobs.length;
    const losses = new Float64Array(n);
    const gradients = new Float64Array(n);
    const pg_clipfrac = new Float64Array(n);
    const pg_clipfrac_lower = new Float64Array(n);
    const ppo_kl = new Float64Array(n);
    for (let s = 0; s + 1 < offsets.length; s++) {
      const [from, to] = [offsets[s]!, offsets[s + 1]!];
      let sum = 0;
      let advantageSum = 0;
      for (let i = from; i < to; i++) {
        const logRatio = clampLogRatio(logprobs[i]!, oldLogprobs[i]!);
        const bounded = Math.max(-clipRatioLow, Math.min(clipRatioHigh, logRatio));
        const sign = Math.sign(advantages[i]!);
        const kept = sign * logRatio <= sign * bounded;
        sum += sign === 0 ? 0 : kept ? logRatio : bounded;
        advantageSum += advantages[i]!;
        // d l / d logprob, scaled by the sequence's loss below.
        if (sign !== 0 && kept && isWithinClamp(logprobs[i]!, oldLogprobs[i]!)) gradients[i] = 1;
        if (bounded !== logRatio && sign > 0) pg_clipfrac[i] = 1;
        if (bounded !== logRatio && sign < 0) pg_clipfrac_lower[i] = 1;
        ppo_kl[i] = -logRatio;
      }
      const loss = -(advantageSum / (to - from)) * Math.exp(sum / (to - from));
      for (let i = from; i < to; i++) {
        losses[i] = loss;
        gradients[i]! *= loss;
      }
    }
    return { losses, gradients, metrics: { pg_clipfrac, pg_clipfrac_lower, ppo_kl } };
  },
};
