import { type RejectionRule, rejectTokens } from "./rejection-rules.js";
import { measureDivergence, type RolloutCorrectionInputs, toRatio } from "./rollout-divergence.js";

/**
 * Corrects for a sampler whose probabilities differ from the trainer's (another kernel, another precision, weights of
 * an earlier step): truncated importance sampling (Ionides 2008; Yao et al. 2025, "Your efficient RL framework secretly
 * brings you off-policy RL training"), masked importance sampling (IcePop, Ling Team 2025, arXiv:2510.18855), and
 * rejection of tokens or sequences that differ too much (Li et al. 2025, "Trust region masking", arXiv:2512.23075).
 */
export interface RolloutCorrectionOptions {
  /** Weight of each token: exp(log w) of the token, of the whole sequence (summed), or none. */
  rolloutIs: "token" | "sequence" | null;
  /** Upper limit of weights. */
  rolloutIsThreshold: number;
  /**
   * IcePop: weights outside of this and `rolloutIsThreshold` are 0. null: larger weights are cut off, smaller ones
   * stay.
   */
  rolloutIsThresholdLower: number | null;
  /** Tokens that any of these rules rejects are excluded from the loss. */
  rolloutRs: readonly RejectionRule[];
  /**
   * Divides the cut-off weights by their mean over the batch: over tokens, or with sequence weights over sequences. The
   * mean is then 1, and the size of the update does not depend on the sampler's difference.
   */
  rolloutIsBatchNormalize: boolean;
  /**
   * A sequence with a token whose ratio, not clamped, is below this is rejected whole, whatever `rolloutRs` decides:
   * the policy could hardly have sampled that token. null: none.
   */
  rolloutTokenVetoThreshold: number | null;
}

export const defaultRolloutCorrection: RolloutCorrectionOptions = {
  rolloutIs: null,
  rolloutIsThreshold: 2,
  rolloutIsThresholdLower: null,
  rolloutRs: [],
  rolloutIsBatchNormalize: false,
  rolloutTokenVetoThreshold: null,
};

/**
 * True if the correction of a token needs the logprobs of this token alone, and rejects none: then any part of a batch
 * can be corrected by itself.
 */
export function correctsTokensAlone(options: RolloutCorrectionOptions): boolean {
  const { rolloutIs, rolloutIsBatchNormalize, rolloutRs, rolloutTokenVetoThreshold } = options;
  const weighs = rolloutIs === null || (rolloutIs === "token" && !rolloutIsBatchNormalize);
  return weighs && rolloutRs.length === 0 && rolloutTokenVetoThreshold === null;
}

export interface RolloutCorrectionOutputs {
  /** The applied weights on sampled tokens, normalised on request, 0 elsewhere; null without importance sampling. */
  weights: Float32Array | null;
  /** The response mask without rejected tokens. Only for the loss: rewards and advantages keep their own mask. */
  lossMask: Uint8Array;
  /**
   * Metrics of `measureDivergence` and `measureWeights`, and
   * `rollout_is_batch_norm_factor`, the mean that weights were divided by;
   * `rollout_rs_masked_fraction` of tokens, `rollout_rs_seq_masked_fraction` of sequences that lost any;
   * `rollout_is_veto_fraction` of sequences, `rollout_is_catastrophic_token_fraction` of tokens below the veto's
   * threshold.
   */
  metrics: Record<string, number>;
}

/** All w = exp(old - rollout), clamped to exp(±20). */
export function correctRollout(
  inputs: RolloutCorrectionInputs,
  options: RolloutCorrectionOptions = defaultRolloutCorrection,
): RolloutCorrectionOutputs {
  const { oldLogprobs, rolloutLogprobs, responseMask, offsets } = inputs;
  const { rolloutIs, rolloutRs, rolloutTokenVetoThreshold: veto } = options;
  const weights = new Float32Array(responseMask.length);
  const lossMask = Uint8Array.from(responseMask);
  const raw: number[][] = [];
  const used: number[][] = [];
  const rejected = { tokens: 0, sequences: 0 };
  const vetoed = { tokens: 0, sequences: 0 };
  for (let i = 0; i + 1 < offsets.length; i++) {
    const sampled: number[] = [];
    for (let t = offsets[i]!; t < offsets[i + 1]!; t++) if (responseMask[t]) sampled.push(t);
    if (sampled.length === 0) continue;
    const logRatios = Float64Array.from(sampled, (t) => oldLogprobs[t]! - rolloutLogprobs[t]!);
    const impossible = veto === null ? 0 : logRatios.filter((logRatio) => logRatio < Math.log(veto)).length;
    vetoed.tokens += impossible;
    if (impossible > 0) vetoed.sequences++;
    const rejections = rejectTokens(logRatios, rolloutRs);
    const lost = rejections.reduce((sum, bit) => sum + bit, 0);
    rejected.tokens += lost;
    if (lost > 0) rejected.sequences++;
    const whole = toRatio(logRatios.reduce((a, b) => a + b, 0));
    const ratios = Array.from(logRatios, (logRatio) => (rolloutIs === "sequence" ? whole : toRatio(logRatio)));
    const cut = ratios.map((ratio) => cutWeight(ratio, options));
    raw.push(ratios);
    used.push(cut);
    sampled.forEach((t, k) => {
      weights[t] = cut[k]!;
      if (rejections[k] || impossible > 0) lossMask[t] = 0;
    });
  }
  const n = used.reduce((sum, sequence) => sum + sequence.length, 0);
  const metrics = measureDivergence(inputs);
  if (n > 0) {
    if (rolloutIs !== null) {
      Object.assign(metrics, measureWeights(raw, used, options));
      // Sequence weights count once per sequence, whatever its length.
      const factor = mean(rolloutIs === "sequence" ? used.map(mean) : used.flat());
      if (options.rolloutIsBatchNormalize && factor > 0) {
        for (let t = 0; t < weights.length; t++) weights[t]! /= factor;
        metrics.rollout_is_batch_norm_factor = factor;
      }
    }
    if (rolloutRs.length > 0) {
      metrics.rollout_rs_masked_fraction = rejected.tokens / n;
      metrics.rollout_rs_seq_masked_fraction = rejected.sequences / used.length;
    }
    if (veto !== null) {
      metrics.rollout_is_veto_fraction = vetoed.sequences / used.length;
      metrics.rollout_is_catastrophic_token_fraction = vetoed.tokens / n;
    }
  }
  return { weights: rolloutIs === null ? null : weights, lossMask, metrics };
}

function cutWeight(ratio: number, { rolloutIsThreshold, rolloutIsThresholdLower }: RolloutCorrectionOptions): number {
  if (rolloutIsThresholdLower === null) return Math.min(ratio, rolloutIsThreshold);
  return ratio >= rolloutIsThresholdLower && ratio <= rolloutIsThreshold ? ratio : 0;
}

/**
 * For the applied weights, before they are normalised: `rollout_is_{mean,std,max,min}` over tokens, and, with w of a
 * sequence the mean over its tokens, `rollout_is_seq_{mean,std,max,min}`, `rollout_is_seq_max_deviation` = max |w - 1|;
 * `rollout_is_eff_sample_size` = mean(w)^2 / mean(w^2), 1 when all are equal. The standard deviation over tokens is the
 * population's, over sequences unbiased.
 * For the ratios before they are cut off: `rollout_is_ratio_fraction_{high,low}`, the shares of tokens above the
 * threshold, and below its inverse or the lower threshold; `rollout_is_seq_fraction_{high,low}` of sequences, by their
 * mean.
 */
function measureWeights(
  raw: readonly number[][],
  used: readonly number[][],
  { rolloutIsThreshold, rolloutIsThresholdLower }: RolloutCorrectionOptions,
): Record<string, number> {
  const tokens = used.flat();
  const ratios = raw.flat();
  const sequences = used.map(mean);
  const lower = rolloutIsThresholdLower ?? 1 / rolloutIsThreshold;
  const share = (values: readonly number[], isIn: (value: number) => boolean) =>
    values.filter(isIn).length / values.length;
  const squares = mean(tokens.map((w) => w * w));
  const average = mean(tokens);
  const averageOfSequences = mean(sequences);
  const deviations = sequences.reduce((sum, w) => sum + (w - averageOfSequences) ** 2, 0);
  return {
    rollout_is_mean: average,
    rollout_is_std: Math.sqrt(mean(tokens.map((w) => (w - average) ** 2))),
    rollout_is_max: largest(tokens),
    rollout_is_min: -largest(tokens.map((w) => -w)),
    rollout_is_eff_sample_size: squares > 0 ? average ** 2 / squares : 0,
    rollout_is_ratio_fraction_high: share(ratios, (r) => r > rolloutIsThreshold),
    rollout_is_ratio_fraction_low: share(ratios, (r) => r < lower),
    rollout_is_seq_mean: averageOfSequences,
    rollout_is_seq_std: Math.sqrt(deviations / Math.max(1, sequences.length - 1)),
    rollout_is_seq_max: largest(sequences),
    rollout_is_seq_min: -largest(sequences.map((w) => -w)),
    rollout_is_seq_max_deviation: largest(sequences.map((w) => Math.abs(w - 1))),
    rollout_is_seq_fraction_high: share(raw.map(mean), (r) => r > rolloutIsThreshold),
    rollout_is_seq_fraction_low: share(raw.map(mean), (r) => r < lower),
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0) / values.length;
}

function largest(values: readonly number[]): number {
  return values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
}
