import { clampLogRatio, clipRatio } from "./log-ratio.js";
import type { PolicyLoss } from "./policy-loss.js";

/**
 * Group sequence policy optimisation (Zheng et al. 2025, arXiv:2507.18071): PPO's clipped objective with one ratio per
 * sequence, exp(min(10, mean over tokens of log r)). As in GSPO-token, each token's gradient is that of its own logprob
 * (logprob - sg(logprob) + sg(mean)): d loss_t / d logprob_t = -A_t ratio unless clipped. Always seq-mean-token-mean.
 */
export const gspoLoss: PolicyLoss = {
  aggregation: "seq-mean-token-mean",
  vanishesWithoutAdvantage: true,
  evaluate({ logprobs, oldLogprobs, advantages, offsets }, { clipRatioLow, clipRatioHigh }) {
    const n = logprobs.length;
    const losses = new Float64Array(n);
    const gradients = new Float64Array(n);
    const pg_clipfrac = new Float64Array(n);
    const ppo_kl = new Float64Array(n);
    for (let s = 0; s + 1 < offsets.length; s++) {
      const [from, to] = [offsets[s]!, offsets[s + 1]!];
      let sum = 0;
      for (let i = from; i < to; i++) {
        const logRatio = clampLogRatio(logprobs[i]!, oldLogprobs[i]!);
        ppo_kl[i] = -logRatio;
        sum += logRatio;
      }
      const mean = sum / (to - from);
      const ratio = Math.exp(Math.min(10, mean));
      const clippedRatio = clipRatio(ratio, clipRatioLow, clipRatioHigh);
      for (let i = from; i < to; i++) {
        const plain = -advantages[i]! * ratio;
        const clipped = -advantages[i]! * clippedRatio;
        losses[i] = Math.max(plain, clipped);
        if (plain >= clipped && mean <= 10) gradients[i] = plain;
        if (clipped > plain) pg_clipfrac[i] = 1;
      }
    }
    return { losses, gradients, metrics: { pg_clipfrac, ppo_kl } };
  },
};
