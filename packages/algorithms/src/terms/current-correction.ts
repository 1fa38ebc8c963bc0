import type { LossInputs } from "@cria/core";
import { correctRollout, type RolloutCorrectionOptions } from "../rollout-correction.js";
import { readColumn } from "./read-column.js";

/** Column of `preparePolicyLoss`: the factor that brings weights of the current correction to a mean of 1. */
export const CURRENT_SCALE = "currentCorrectionScale";

/** Corrections of the tokens of one micro-batch. */
export interface TokenCorrections {
  /** Importance weight of each token; undefined: 1. */
  weights: ArrayLike<number> | undefined;
  /** 0 for rejected tokens; undefined: none is rejected. */
  lossMask: ArrayLike<number> | undefined;
  /** This micro-batch's shares of the correction's metrics. */
  shares: Record<string, number>;
}

/**
 * Corrections for the difference between sampler and trainer: those that the batch brings (`rolloutIsWeights`), or with
 * `options` those of the current policy, whose old logprobs are then the sampler's.
 */
export function correctTokens(inputs: LossInputs, options: RolloutCorrectionOptions | null): TokenCorrections {
  const { columns } = inputs;
  if (!options) return { weights: columns.rolloutIsWeights, lossMask: undefined, shares: {} };
  const { weights, lossMask, metrics } = correctNow(inputs, options);
  return { weights: weights ?? columns.rolloutIsWeights, lossMask, shares: shareMetrics(metrics, inputs) };
}

/** Factor of each token's weight by its corrections; undefined: all are 1. */
export function multiplyCorrections(
  { weights, lossMask }: Pick<TokenCorrections, "weights" | "lossMask">,
  tokens: number,
): ArrayLike<number> | undefined {
  if (!weights || !lossMask) return weights ?? lossMask;
  return Float64Array.from({ length: tokens }, (_, i) => weights[i]! * lossMask[i]!);
}

/** The geometric mean of a sequence's weights, on each of its tokens; 0 if one weight is 0. */
export function averageGeometrically(weights: ArrayLike<number>, offsets: Int32Array): Float64Array {
  const means = new Float64Array(weights.length);
  for (let s = 0; s + 1 < offsets.length; s++) {
    const [from, to] = [offsets[s]!, offsets[s + 1]!];
    let sum = 0;
    for (let i = from; i < to; i++) sum += Math.log(weights[i]!);
    means.fill(Math.exp(sum / (to - from)), from, to);
  }
  return means;
}

/** The correction of a micro-batch whose tokens are all in the loss. Normalises its weights by the prepared factor. */
function correctNow({ logprobs, columns, offsets }: LossInputs, options: RolloutCorrectionOptions) {
  const tokens = { oldLogprobs: logprobs, rolloutLogprobs: readColumn(columns, "oldLogprobs"), offsets };
  const responseMask = new Uint8Array(logprobs.length).fill(1);
  const result = correctRollout({ ...tokens, responseMask }, { ...options, rolloutIsBatchNormalize: false });
  if (!options.rolloutIsBatchNormalize || !result.weights) return result;
  const scale = readColumn(columns, CURRENT_SCALE);
  return { ...result, weights: result.weights.map((weight, i) => weight * scale[i]!) };
}

const tokenMeans = ["kl", "k3_kl", "chi2_token", "rollout_is_mean", "rollout_rs_masked_fraction"].concat([
  "rollout_is_ratio_fraction_high",
  "rollout_is_ratio_fraction_low",
  "rollout_is_catastrophic_token_fraction",
]);
const sequenceMeans = ["training_ppl", "training_log_ppl", "rollout_ppl", "rollout_log_ppl", "log_ppl_diff"].concat(
  ["log_ppl_abs_diff", "ppl_ratio", "chi2_seq", "rollout_is_seq_mean", "rollout_is_seq_fraction_high"],
  ["rollout_is_seq_fraction_low", "rollout_rs_seq_masked_fraction", "rollout_is_veto_fraction"],
);

/** This micro-batch's share of the mini-batch's means; extremes and spreads are not additive. */
function shareMetrics(
  metrics: Record<string, number>,
  { offsets, totals }: Pick<LossInputs, "offsets" | "totals">,
): Record<string, number> {
  const shares: Record<string, number> = {};
  const add = (names: readonly string[], share: number) => {
    for (const name of names) if (metrics[name] !== undefined) shares[`rollout_corr/${name}`] = metrics[name] * share;
  };
  add(tokenMeans, (offsets.at(-1) ?? 0) / Math.max(1, totals.tokens));
  add(sequenceMeans, (offsets.length - 1) / Math.max(1, totals.sequences));
  return shares;
}
