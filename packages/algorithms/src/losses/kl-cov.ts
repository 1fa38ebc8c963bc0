import { computeCovariances, countShare, readPrepared } from "./covariance.js";
import { evaluateTokens } from "./evaluate-tokens.js";
import type { PolicyLoss } from "./policy-loss.js";

/** 1 = the token has a KL penalty. */
const PENALIZED = "klCovPenalized";

/**
 * Two evaluations of a token in different micro-batches differ by less: within it a log ratio counts as 0, because its
 * sign is random.
 */
const ROUNDING = 1e-5;

/**
 * KL-Cov (Cui et al. 2025, arXiv:2505.22617): -A r, and on the max(1, floor(klCovRatio n)) tokens of the mini-batch
 * whose advantage and logprob vary together most, plus ppoKlCoef |log r|. `prepare` computes the ranks.
 */
export const klCovLoss: PolicyLoss = {
  prepare(miniBatch, { klCovRatio }) {
    const covariances = computeCovariances(miniBatch);
    const ranked = Array.from(covariances, (_, i) => i).sort((a, b) => covariances[b]! - covariances[a]! || a - b);
    const penalized = new Float32Array(covariances.length);
    for (const i of ranked.slice(0, countShare(klCovRatio, covariances.length))) penalized[i] = 1;
    return { [PENALIZED]: penalized };
  },
  evaluate(inputs, { ppoKlCoef }) {
    const penalized = readPrepared(inputs.columns, PENALIZED);
    const evaluated = evaluateTokens(inputs, [], ({ logRatio, ratio, isWithinClamp, advantage }, i) => {
      const coefficient = penalized[i]! * ppoKlCoef;
      const plain = -advantage * ratio;
      const loss = plain + coefficient * Math.abs(logRatio);
      const slope = Math.abs(logRatio) < ROUNDING ? 0 : Math.sign(logRatio);
      return { loss, gradient: isWithinClamp ? plain + coefficient * slope : 0 };
    });
    // The mean magnitude, like the penalty.
    return { ...evaluated, metrics: { ppo_kl: evaluated.metrics.ppo_kl!.map(Math.abs) } };
  },
};
