import { Registry } from "./registry.js";

/** Values of the masked-in tokens of one micro-batch, side by side. */
export interface TokenLossInputs {
  logprobs: Float32Array;
  oldLogprobs: Float32Array;
  advantages: Float32Array;
}

export interface ClipOptions {
  clipRatioLow: number;
  clipRatioHigh: number;
  /** Dual clip's bound for negative advantages (arXiv:1912.09729); above 1. */
  clipRatioC: number;
}

export interface TokenLoss {
  /** Loss of each token. */
  losses: Float64Array;
  /** d losses[i] / d logprobs[i]. */
  gradients: Float64Array;
  /** Values of each token, to be averaged like the loss. */
  metrics: Record<string, Float64Array>;
}

export type PolicyLoss = (inputs: TokenLossInputs, options: ClipOptions) => TokenLoss;

export const policyLosses = new Registry<PolicyLoss>("policy loss");

/**
 * PPO's clipped objective (Schulman et al. 2017, arXiv:1707.06347) with dual clip: r = exp(clamp(logprob - old, ±20)),
 * max(-A r, -A clip(r, 1 - low, 1 + high)), and where A < 0 at most -A c.
 */
export const vanillaLoss: PolicyLoss = (
  { logprobs, oldLogprobs, advantages },
  { clipRatioLow, clipRatioHigh, clipRatioC },
) => {
  const n = logprobs.length;
  const losses = new Float64Array(n);
  const gradients = new Float64Array(n);
  // Mean over the mask: share of clipped tokens, of those at the dual clip's bound, and the k1 estimate of KL(old, new).
  const pg_clipfrac = new Float64Array(n);
  const pg_clipfrac_lower = new Float64Array(n);
  const ppo_kl = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const difference = logprobs[i]! - oldLogprobs[i]!;
    const clamped = Math.max(-20, Math.min(20, difference));
    const ratio = Math.exp(clamped);
    const advantage = advantages[i]!;
    const plain = -advantage * ratio;
    const clipped = -advantage * Math.max(1 - clipRatioLow, Math.min(1 + clipRatioHigh, ratio));
    let loss = Math.max(plain, clipped);
    // Where the clipped side wins the ratio is out of range (or both agree): no gradient, except in the tie.
    let gradient = plain >= clipped && clamped === difference ? plain : 0;
    if (clipped > plain) pg_clipfrac[i] = 1;
    const bound = -advantage * clipRatioC;
    if (advantage < 0 && loss > bound) {
      loss = bound;
      gradient = 0;
      pg_clipfrac_lower[i] = 1;
    }
    losses[i] = loss;
    gradients[i] = gradient;
    ppo_kl[i] = -clamped;
  }
  return { losses, gradients, metrics: { pg_clipfrac, pg_clipfrac_lower, ppo_kl } };
};

policyLosses.register("vanilla", vanillaLoss);
