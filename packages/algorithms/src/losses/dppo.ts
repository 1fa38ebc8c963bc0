import { evaluateTokens } from "./evaluate-tokens.js";
import type { PolicyLoss } from "./policy-loss.js";

/** A divergence of two Bernoulli distributions, given the old and current probability of the same event. */
type BinaryDivergence = (old: number, now: number) => number;

/** Total variation: |now - old|. */
const measureTotalVariation: BinaryDivergence = (old, now) => Math.abs(now - old);

/** KL(old || now) = old log(old / now) + (1 - old) log((1 - old) / (1 - now)), never below 0. */
const measureKl: BinaryDivergence = (old, now) => {
  const term = (p: number, q: number) => (p > 0 ? p * Math.log(p / Math.max(q, Number.MIN_VALUE)) : 0);
  return Math.max(0, term(old, now) + term(1 - old, 1 - now));
};

/**
 * Divergence proximal policy optimisation with a binary divergence (DPPO, Qi et al. 2026, arXiv:2602.04879): a trust
 * region by the probability of the sampled token instead of its ratio, -sg(M min(r, clipRatioC)) A logprob. M is 0 if
 * the step would lead further out of the region: the divergence exceeds its bound and r is above 1 with A > 0 (bound
 * clipRatioHigh), or below 1 with A < 0 (clipRatioLow). The weight is constant, as in truncated importance sampling: a
 * kept token's gradient is -min(r, clipRatioC) A.
 */
function makeDppoLoss(measure: BinaryDivergence): PolicyLoss {
  return {
    vanishesWithoutAdvantage: true,
    evaluate: (inputs, { clipRatioLow, clipRatioHigh, clipRatioC }) =>
      evaluateTokens(inputs, ["pg_clipfrac"], ({ logprob, oldLogprob, logRatio, ratio, advantage }) => {
        const isOutward = advantage > 0 ? logRatio > 0 : advantage < 0 && logRatio < 0;
        const bound = advantage > 0 ? clipRatioHigh : clipRatioLow;
        if (isOutward && measure(Math.exp(oldLogprob), Math.exp(logprob)) > bound)
          return { loss: 0, gradient: 0, pg_clipfrac: 1 };
        const gradient = -Math.min(ratio, clipRatioC) * advantage;
        return { loss: gradient * logprob, gradient, pg_clipfrac: 0 };
      }),
  };
}

export const dppoTvLoss = makeDppoLoss(measureTotalVariation);
export const dppoKlLoss = makeDppoLoss(measureKl);
