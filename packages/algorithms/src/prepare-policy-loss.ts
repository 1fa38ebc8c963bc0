import type { TrainSequence } from "@cria/core";
import { defaultAlgorithms } from "./algorithms.js";
import type { MiniBatch } from "./losses/policy-loss.js";
import type { PolicyLossOptions } from "./policy-loss-options.js";
import { correctRollout } from "./rollout-correction.js";
import { CURRENT_SCALE } from "./terms/current-correction.js";
import { nameWeights } from "./terms/loss-term.js";

/** True if the loss needs statistics of the whole mini-batch, so that it must go through `preparePolicyLoss`. */
export function needsPreparation(options: PolicyLossOptions, { policyLosses } = defaultAlgorithms): boolean {
  return policyLosses.resolve(options.lossMode).prepare !== undefined || normalizesCurrent(options);
}

function normalizesCurrent({ currentCorrection: correction }: PolicyLossOptions): boolean {
  return correction !== null && correction.rolloutIs !== null && correction.rolloutIsBatchNormalize;
}

/**
 * The first of a loss's two phases, for losses with statistics over the whole mini-batch: adds columns to the sequences
 * that the second phase, `composePolicyLoss` on micro-batches, reads. The statistics are those of the mini-batch,
 * however it is split afterwards.
 * @param sequences the whole mini-batch, with columns `advantages` and `oldLogprobs`. Rows whose weight in the policy
 * loss is 0 do not count.
 * @param logprobs of each sequence, as long as its tokens, by the weights that the update starts from.
 * @param random uniform in [0, 1).
 * @param algorithms registries that resolve names.
 */
export function preparePolicyLoss(
  options: PolicyLossOptions,
  sequences: readonly TrainSequence[],
  logprobs: readonly ArrayLike<number>[],
  random: () => number,
  algorithms = defaultAlgorithms,
): TrainSequence[] {
  if (!needsPreparation(options, algorithms)) return [...sequences];
  const masks = sequences.map(readMask);
  const gather = (pick: (sequence: number) => ArrayLike<number>) => {
    const values: number[] = [];
    masks.forEach((mask, s) => {
      const source = pick(s);
      for (let t = 0; t < mask.length; t++) if (mask[t]) values.push(source[t]!);
    });
    return Float32Array.from(values);
  };
  const miniBatch: MiniBatch = {
    logprobs: gather((s) => logprobs[s]!),
    oldLogprobs: gather((s) => sequences[s]!.columns!.oldLogprobs!),
    advantages: gather((s) => sequences[s]!.columns!.advantages!),
    random,
  };
  const prepared = { ...algorithms.policyLosses.resolve(options.lossMode).prepare?.(miniBatch, options) };
  if (normalizesCurrent(options)) prepared[CURRENT_SCALE] = scaleCurrent(options, miniBatch, masks);
  let at = 0;
  return sequences.map((sequence, s) => {
    const columns: Record<string, ArrayLike<number>> = { ...sequence.columns };
    let next = at;
    for (const [name, values] of Object.entries(prepared)) {
      next = at;
      columns[name] = Float32Array.from(masks[s]!, (bit) => (bit ? values[next++]! : 0));
    }
    at = next;
    return { ...sequence, columns };
  });
}

/** Mask of the tokens that the policy loss sees: none of a row whose weight in it is 0. */
function readMask({ lossMask, columns }: TrainSequence): ArrayLike<number> {
  const weights = columns?.[nameWeights("policy")];
  return weights?.[0] === 0 ? new Uint8Array(lossMask.length) : lossMask;
}

/** The reciprocal of the current correction's mean weight, on every token of the mini-batch. */
function scaleCurrent(
  { currentCorrection }: PolicyLossOptions,
  { logprobs, oldLogprobs }: MiniBatch,
  masks: readonly ArrayLike<number>[],
): Float32Array {
  const offsets = [0];
  for (const mask of masks)
    offsets.push(offsets.at(-1)! + Array.from(mask).reduce((sum, bit) => sum + (bit ? 1 : 0), 0));
  const { metrics } = correctRollout(
    {
      oldLogprobs: logprobs,
      rolloutLogprobs: oldLogprobs,
      responseMask: new Uint8Array(logprobs.length).fill(1),
      offsets,
    },
    currentCorrection!,
  );
  return new Float32Array(logprobs.length).fill(1 / (metrics.rollout_is_batch_norm_factor ?? 1));
}
