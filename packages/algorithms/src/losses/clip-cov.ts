import { computeCovariances, countShare, readPrepared } from "./covariance.js";
import { evaluateTokens } from "./evaluate-tokens.js";
import { clampLogRatio, clipRatio } from "./log-ratio.js";
import type { PolicyLoss } from "./policy-loss.js";

/** 1 = the token's loss is left out. */
const DROPPED = "clipCovDropped";

/**
 * Clip-Cov (Cui et al. 2025, arXiv:2505.22617): PPO's max(-A r, -A clip(r)), in which tokens whose advantage and
 * logprob vary together, and which reduce the entropy, are left out at random: of the tokens that are not clipped and
 * have clipCovLb < cov < clipCovUb, max(1, floor(clipCovRatio n)) get loss and gradient 0. cov, n and the draw belong
 * to the whole mini-batch, so `prepare` computes them.
 */
export const clipCovLoss: PolicyLoss = {
  prepare(miniBatch, { clipRatioLow, clipRatioHigh, clipCovRatio, clipCovLb, clipCovUb }) {
    const { logprobs, oldLogprobs, advantages, random } = miniBatch;
    const covariances = computeCovariances(miniBatch);
    const candidates: number[] = [];
    for (let i = 0; i < logprobs.length; i++) {
      const ratio = Math.exp(clampLogRatio(logprobs[i]!, oldLogprobs[i]!));
      const isClipped = -advantages[i]! * clipRatio(ratio, clipRatioLow, clipRatioHigh) > -advantages[i]! * ratio;
      if (!isClipped && covariances[i]! > clipCovLb && covariances[i]! < clipCovUb) candidates.push(i);
    }
    const dropped = new Float32Array(logprobs.length);
    const count = Math.min(candidates.length, countShare(clipCovRatio, logprobs.length));
    for (let k = 0; k < count; k++) {
      const pick = k + Math.floor(random() * (candidates.length - k));
      dropped[candidates[pick]!] = 1;
      candidates[pick] = candidates[k]!;
    }
    return { [DROPPED]: dropped };
  },
  evaluate(inputs, { clipRatioLow, clipRatioHigh }) {
    const dropped = readPrepared(inputs.columns, DROPPED);
    // Here pg_clipfrac is the share of tokens left out by their covariance.
    return evaluateTokens(inputs, ["pg_clipfrac"], ({ ratio, isWithinClamp, advantage }, i) => {
      if (dropped[i]) return { loss: 0, gradient: 0, pg_clipfrac: 1 };
      const plain = -advantage * ratio;
      const clipped = -advantage * clipRatio(ratio, clipRatioLow, clipRatioHigh);
      const gradient = plain >= clipped && isWithinClamp ? plain : 0;
      return { loss: Math.max(plain, clipped), gradient, pg_clipfrac: 0 };
    });
  },
};
