import { correctRollout } from "@cria/algorithms";
import { defaultRolloutCorrection } from "@cria/algorithms/internal";
import type { Trajectory } from "@cria/core";
import type { Settings } from "../config/import/settings.js";
import { joinTokens, layOutTokens } from "../policy/flat-tokens.js";
import type { TokenScores } from "../policy/token-scores.js";

/** Metric of a conversation that another machine held, whose bits are not those of this one. */
export const OTHER_CLASS = "other_class";

/** Of the trajectories that were evaluated, by index. */
export interface CorrectedRollouts {
  /** The response masks without what was rejected. */
  lossMasks: ReadonlyMap<number, Uint8Array>;
  /** null without importance sampling. */
  weights: ReadonlyMap<number, Float32Array> | null;
  metrics: Record<string, number>;
}

/**
 * Corrects for the difference between the sampler's logprobs and the training graph's, over all evaluated trajectories:
 * importance weights and rejections. With `bypass` nothing is corrected here, because the sampler would be compared
 * with itself; the loss then corrects, with the policy at that moment. Conversations of machines whose bits are others are
 * weighed in any case: by token, at most 2.
 */
export function correctRollouts(
  trajectories: readonly Trajectory[],
  scores: ReadonlyMap<number, TokenScores>,
  { bypass, ...correction }: Settings["correction"],
): CorrectedRollouts {
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

/** Most that a token of another sampler weighs, as in truncated importance sampling. */
const MOST_WEIGHT = 2;

/** How much likelier the policy makes each token than the sampler that drew it; 1 for those of its own class of bits. */
function weigh({ rolloutLogprobs, responseMask }: Trajectory, { oldLogprobs }: TokenScores, isForeign: boolean) {
  return Float32Array.from(responseMask, (bit, t) =>
    bit && isForeign ? Math.min(MOST_WEIGHT, Math.exp(oldLogprobs[t]! - rolloutLogprobs[t]!)) : 1,
  );
}
