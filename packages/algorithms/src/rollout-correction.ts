import { measureDivergence, type RolloutCorrectionInputs, toRatio } from "./rollout-divergence.js";

/**
 * Corrects for a sampler whose probabilities are not the trainer's (another kernel, another precision, weights of an
 * earlier step): truncated importance sampling (Ionides 2008; Yao et al. 2025, "Your efficient RL framework secretly
 * brings you off-policy RL training") and rejection of what is too far off.
 */
export interface RolloutCorrectionOptions {
  /** Weight of each token: exp(log w) of the token, of the whole sequence (summed), or none. */
  rolloutIs: "token" | "sequence" | null;
  /** Weights are cut off here. */
  rolloutIsThreshold: number;
  /** What is rejected by its ratio: tokens, sequences by the product of their tokens', or by its geometric mean. */
  rolloutRs: "token" | "sequence" | "geometric" | null;
  /** Ratios above are rejected. */
  rolloutRsThreshold: number;
  /** Ratios below are rejected; null: 1 / rolloutRsThreshold. */
  rolloutRsThresholdLower: number | null;
  /**
   * Divides the cut-off weights by their mean over the batch: over tokens, or with sequence weights over sequences. The
   * mean is then 1, and the size of the update does not depend on how far the sampler is off.
   */
  rolloutIsBatchNormalize: boolean;
  /**
   * Sequences with a token whose ratio, not clamped, is below this are rejected whole, whatever `rolloutRs` says: the
   * policy could hardly have said that. null: none.
   */
  rolloutTokenVetoThreshold: number | null;
}

export const defaultRolloutCorrection: RolloutCorrectionOptions = {
  rolloutIs: null,
  rolloutIsThreshold: 2,
  rolloutRs: null,
  rolloutRsThreshold: 2,
  rolloutRsThresholdLower: null,
  rolloutIsBatchNormalize: false,
  rolloutTokenVetoThreshold: null,
};

export interface RolloutCorrectionOutputs {
  /** min(w, rolloutIsThreshold) on sampled tokens, normalised where asked for, 0 elsewhere; null without importance sampling. */
  weights: Float32Array | null;
  /** The response mask without what was rejected. For the loss alone: rewards and advantages keep their own mask. */
  lossMask: Uint8Array;
  /**
   * Those of `measureDivergence`; `rollout_is_{mean,max,min}` of the weights before they are cut off; `rollout_is_eff_sample_size` = mean(w)^2 / mean(w^2) of those that are used, 1 when all are equal;
   * `rollout_is_batch_norm_factor`, the mean that they were divided by;
   * `rollout_rs_masked_fraction` of tokens, `rollout_rs_seq_masked_fraction` of sequences that lost any;
   * `rollout_is_veto_fraction` of sequences, `rollout_is_catastrophic_token_fraction` of tokens below the veto's threshold.
   */
  metrics: Record<string, number>;
}

/** With all w = exp(old - rollout), clamped to exp(±20). */
export function correctRollout(
  inputs: RolloutCorrectionInputs,
  options: RolloutCorrectionOptions = defaultRolloutCorrection,
): RolloutCorrectionOutputs {
  const { oldLogprobs, rolloutLogprobs, responseMask, offsets } = inputs;
  const { rolloutIs, rolloutIsThreshold, rolloutRs, rolloutRsThreshold } = options;
  const lower = options.rolloutRsThresholdLower ?? 1 / rolloutRsThreshold;
  const isRejected = (ratio: number) => ratio > rolloutRsThreshold || ratio < lower;
  const weights = new Float32Array(responseMask.length);
  const lossMask = Uint8Array.from(responseMask);
  const raw = { sum: 0, max: Number.NEGATIVE_INFINITY, min: Number.POSITIVE_INFINITY };
  const used = { sum: 0, squares: 0 };
  const rejected = { tokens: 0, sequences: 0, of: 0 };
  const veto = { tokens: 0, sequences: 0, logThreshold: Math.log(options.rolloutTokenVetoThreshold ?? 0) };
  /** Sampled tokens. */
  let n = 0;
  /** Mean weights of the sequences, added up. */
  let sequenceWeights = 0;
  for (let i = 0; i + 1 < offsets.length; i++) {
    let sum = 0;
    let count = 0;
    let vetoed = 0;
    for (let t = offsets[i]!; t < offsets[i + 1]!; t++) {
      if (!responseMask[t]) continue;
      const logRatio = oldLogprobs[t]! - rolloutLogprobs[t]!;
      sum += logRatio;
      count++;
      if (logRatio < veto.logThreshold) vetoed++;
    }
    if (count === 0) continue;
    n += count;
    rejected.of++;
    veto.tokens += vetoed;
    if (vetoed > 0) veto.sequences++;
    const sequenceRatio = toRatio(rolloutRs === "geometric" ? sum / count : sum);
    let lost = 0;
    let sequenceWeight = 0;
    for (let t = offsets[i]!; t < offsets[i + 1]!; t++) {
      if (!responseMask[t]) continue;
      const tokenRatio = toRatio(oldLogprobs[t]! - rolloutLogprobs[t]!);
      const weight = rolloutIs === "sequence" ? toRatio(sum) : tokenRatio;
      const cut = Math.min(weight, rolloutIsThreshold);
      raw.sum += weight;
      raw.max = Math.max(raw.max, weight);
      raw.min = Math.min(raw.min, weight);
      used.sum += cut;
      used.squares += cut * cut;
      sequenceWeight += cut;
      weights[t] = cut;
      if (rolloutRs !== null && isRejected(rolloutRs === "token" ? tokenRatio : sequenceRatio)) {
        lossMask[t] = 0;
        lost++;
      }
      if (vetoed > 0) lossMask[t] = 0;
    }
    sequenceWeights += sequenceWeight / count;
    rejected.tokens += lost;
    if (lost > 0) rejected.sequences++;
  }
  const factor = rolloutIs === "sequence" ? sequenceWeights / rejected.of : used.sum / n;
  const isNormalized = options.rolloutIsBatchNormalize && rolloutIs !== null && factor > 0;
  if (isNormalized) for (let t = 0; t < weights.length; t++) weights[t]! /= factor;
  const metrics = measureDivergence(inputs);
  if (n > 0) {
    if (rolloutIs !== null) {
      metrics.rollout_is_mean = raw.sum / n;
      metrics.rollout_is_max = raw.max;
      metrics.rollout_is_min = raw.min;
      metrics.rollout_is_eff_sample_size = used.sum ** 2 / (n * used.squares);
      if (isNormalized) metrics.rollout_is_batch_norm_factor = factor;
    }
    if (rolloutRs !== null) {
      metrics.rollout_rs_masked_fraction = rejected.tokens / n;
      metrics.rollout_rs_seq_masked_fraction = rejected.sequences / rejected.of;
    }
    if (options.rolloutTokenVetoThreshold !== null) {
      metrics.rollout_is_veto_fraction = veto.sequences / rejected.of;
      metrics.rollout_is_catastrophic_token_fraction = veto.tokens / n;
    }
  }
  return { weights: rolloutIs === null ? null : weights, lossMask, metrics };
}
