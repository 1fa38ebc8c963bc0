import { correctRollout } from "@cria/algorithms";
import { defaultRolloutCorrection } from "@cria/algorithms/internal";
import type { Trajectory } from "@cria/core";
import type { Settings } from "../config/import/settings.js";
import { joinTokens, layOutTokens } from "../policy/flat-tokens.js";
import type { TokenScores } from "../policy/token-scores.js";

/** Metric of a conversation held by a machine that computes other bits than this one. */
export const OTHER_CLASS = "other_class";

/** Correction of the evaluated trajectories; maps are keyed by their index. */
export interface StepCorrection {
  /** Response masks without the rejected tokens. */
  lossMasks: ReadonlyMap<number, Uint8Array>;
  /** Importance weight of each token; null without importance sampling. */
  weights: ReadonlyMap<number, Float32Array> | null;
  metrics: Record<string, number>;
}

/**
 * Corrects for the difference between the sampler's logprobs and the training graph's, over all evaluated trajectories:
 * importance weights and rejections. With `bypass` nothing is corrected here, because the sampler would be compared
 * with itself; the loss corrects instead, with the policy's current logprobs. If no importance sampling is configured,
 * conversations of machines that compute other bits still get token-level weights of at most 2.
 */
export function correctRollouts(
  trajectories: readonly Trajectory[],
  scores: ReadonlyMap<number, TokenScores>,
  { bypass, ...correction }: Settings["correction"],
): StepCorrection {
  const indices = [...scores.keys()].sort((a, b) => a - b);
  const offsets = layOutTokens(indices.map((i) => trajectories[i]!));
  const join = (pick: (index: number) => ArrayLike<number>) => joinTokens(offsets, indices.map(pick));
  const { lossMask, weights, metrics } = correctRollout(
    {
      oldLogprobs: join((i) => scores.get(i)!.oldLogprobs),
      rolloutLogprobs: join((i) => trajectories[i]!.rolloutLogprobs),
      responseMask: join((i) => trajectories[i]!.responseMask),
      offsets,
    },
    bypass ? defaultRolloutCorrection : correction,
  );
  const isForeign = indices.map((i) => (trajectories[i]!.metrics[OTHER_CLASS] ?? 0) > 0);
  const foreignWeights =
    isForeign.includes(true) && !bypass
      ? new Map(indices.map((i, k) => [i, weigh(trajectories[i]!, scores.get(i)!, isForeign[k]!)]))
      : null;
  const cut = <T>(slice: (from: number, to: number) => T) =>
    new Map(indices.map((index, k) => [index, slice(offsets[k]!, offsets[k + 1]!)]));
  return {
    lossMasks: cut((from, to) => lossMask.subarray(from, to)),
    weights: weights ? cut((from, to) => weights.subarray(from, to)) : foreignWeights,
    metrics: bypass ? {} : metrics,
  };
}

/** Upper limit of the weight of another sampler's token, as in truncated importance sampling. */
const MOST_WEIGHT = 2;

/**
 * Weight of each token: its probability under the policy divided by that under its sampler, at most `MOST_WEIGHT`; 1
 * for tokens of a machine with the same bits.
 */
function weigh({ rolloutLogprobs, responseMask }: Trajectory, { oldLogprobs }: TokenScores, isForeign: boolean) {
  return Float32Array.from(responseMask, (bit, t) =>
    bit && isForeign ? Math.min(MOST_WEIGHT, Math.exp(oldLogprobs[t]! - rolloutLogprobs[t]!)) : 1,
  );
}
