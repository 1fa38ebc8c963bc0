/** Flat over all trajectories, as for advantages. */
export interface RolloutCorrectionInputs {
  /** Logprobs by the training graph. */
  oldLogprobs: ArrayLike<number>;
  /** Logprobs by the sampler. */
  rolloutLogprobs: ArrayLike<number>;
  responseMask: ArrayLike<number>;
  offsets: ArrayLike<number>;
}

/** exp of a log-ratio, clamped so that it cannot overflow. */
export const toRatio = (logRatio: number) => Math.exp(Math.max(-20, Math.min(20, logRatio)));

/**
 * Divergence between sampler and training graph, over sampled tokens and over the sequences that have any; empty if no
 * token was sampled. With d = old - rollout of a token, r = exp(d) clamped to exp(±20), and of a sequence its mean
 * logprobs:
 *
 *     kl, k3_kl                       mean of -d, of r - 1 - d: KL(rollout || old)
 *     {training,rollout}_log_ppl      mean over sequences of -mean(old), -mean(rollout)
 *     {training,rollout}_ppl          mean over sequences of exp of that
 *     log_ppl_diff, _abs_diff         mean of mean(rollout) - mean(old), and of its absolute value
 *     log_ppl_diff_max, _min          the extremes of it
 *     ppl_ratio                       mean of exp(mean(rollout) - mean(old)): training_ppl / rollout_ppl of each sequence
 *     chi2_token, chi2_seq            mean of r² - 1 over tokens, and over sequences with r = exp(sum of d), clamped likewise:
 *                                     chi-squared divergence, the variance of importance weights
 */
export function measureDivergence(inputs: RolloutCorrectionInputs): Record<string, number> {
  const { oldLogprobs, rolloutLogprobs, responseMask, offsets } = inputs;
  const token = { count: 0, k1: 0, k3: 0, squares: 0 };
  const sequence = { count: 0, old: 0, rollout: 0, oldPpl: 0, rolloutPpl: 0, diff: 0, ratio: 0, squares: 0 };
  const diff = { absolute: 0, max: Number.NEGATIVE_INFINITY, min: Number.POSITIVE_INFINITY };
  for (let i = 0; i + 1 < offsets.length; i++) {
    let [old, rollout, count] = [0, 0, 0];
    for (let t = offsets[i]!; t < offsets[i + 1]!; t++) {
      if (!responseMask[t]) continue;
      const logRatio = oldLogprobs[t]! - rolloutLogprobs[t]!;
      const ratio = toRatio(logRatio);
      old += oldLogprobs[t]!;
      rollout += rolloutLogprobs[t]!;
      count++;
      token.k1 -= logRatio;
      token.k3 += ratio - 1 - logRatio;
      token.squares += ratio * ratio;
    }
    if (count === 0) continue;
    token.count += count;
    sequence.count++;
    sequence.squares += toRatio(old - rollout) ** 2;
    old /= count;
    rollout /= count;
    sequence.old += old;
    sequence.rollout += rollout;
    sequence.oldPpl += Math.exp(-old);
    sequence.rolloutPpl += Math.exp(-rollout);
    sequence.diff += rollout - old;
    sequence.ratio += Math.exp(rollout - old);
    diff.absolute += Math.abs(rollout - old);
    diff.max = Math.max(diff.max, rollout - old);
    diff.min = Math.min(diff.min, rollout - old);
  }
  if (token.count === 0) return {};
  return {
    kl: token.k1 / token.count,
    k3_kl: token.k3 / token.count,
    training_log_ppl: -sequence.old / sequence.count,
    training_ppl: sequence.oldPpl / sequence.count,
    rollout_log_ppl: -sequence.rollout / sequence.count,
    rollout_ppl: sequence.rolloutPpl / sequence.count,
    log_ppl_diff: sequence.diff / sequence.count,
    log_ppl_abs_diff: diff.absolute / sequence.count,
    log_ppl_diff_max: diff.max,
    log_ppl_diff_min: diff.min,
    ppl_ratio: sequence.ratio / sequence.count,
    chi2_token: token.squares / token.count - 1,
    chi2_seq: sequence.squares / sequence.count - 1,
  };
}
