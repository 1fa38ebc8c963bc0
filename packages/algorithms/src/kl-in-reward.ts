import { type KlEstimate, klEstimates } from "./kl.js";

export interface KlInRewardInputs {
  /** Flat over all trajectories, as for advantages. */
  tokenLevelScores: ArrayLike<number>;
  oldLogprobs: ArrayLike<number>;
  refLogprobs: ArrayLike<number>;
  responseMask: ArrayLike<number>;
  offsets: ArrayLike<number>;
  /** `algorithm.kl_penalty`: a KL estimate, or the name of one. */
  type: string | KlEstimate;
  coefficient: number;
}

export interface KlInRewardOutputs {
  /** score - coefficient * KL estimate, on sampled tokens; 0 elsewhere. */
  tokenLevelRewards: Float64Array;
  /** KL for the controller: mean over a trajectory's sampled tokens, then over trajectories that have any. */
  kl: number;
}

/** KL to the reference as a penalty in the reward (Ziegler et al. 2019, arXiv:1909.08593). @throws ConfigError for an unknown type. */
export function penalizeRewards(inputs: KlInRewardInputs): KlInRewardOutputs {
  const { tokenLevelScores, oldLogprobs, refLogprobs, responseMask, offsets, coefficient } = inputs;
  const estimate = klEstimates.resolve(inputs.type);
  const tokenLevelRewards = new Float64Array(responseMask.length);
  let klSum = 0;
  let sequences = 0;
  for (let i = 0; i + 1 < offsets.length; i++) {
    let sum = 0;
    let count = 0;
    for (let t = offsets[i]!; t < offsets[i + 1]!; t++) {
      if (!responseMask[t]) continue;
      const { value } = estimate(oldLogprobs[t]! - refLogprobs[t]!);
      tokenLevelRewards[t] = tokenLevelScores[t]! - coefficient * value;
      sum += value;
      count++;
    }
    if (count === 0) continue;
    klSum += sum / count;
    sequences++;
  }
  return { tokenLevelRewards, kl: sequences > 0 ? klSum / sequences : 0 };
}
