import type { TrainSequence, Trajectory } from "@cria/core";
import { listPaths } from "@cria/core/internal";
import { countOnes } from "./flat-tokens.js";

type Tokens = Pick<Trajectory, "tokenIds" | "segments">;

/** Conversations to evaluate, and a function that maps their values back to the trajectories. */
export interface EvaluatedPaths {
  /** One sequence per conversation; a trajectory without branches is one conversation. */
  sequences: { tokenIds: Int32Array; from: number }[];
  /**
   * Returns values of each trajectory, as long as its tokens; a token shared by several conversations has one value.
   */
  join(values: readonly Float32Array[]): Float32Array[];
}

/** Lists the conversations of trajectories. The evaluation of each starts at the first sampled token of its own. */
export function evaluatePaths(
  trajectories: readonly (Tokens & Pick<Trajectory, "promptLength" | "responseMask">)[],
): EvaluatedPaths {
  const sequences: EvaluatedPaths["sequences"] = [];
  const joins = trajectories.map((trajectory): ((values: readonly Float32Array[]) => Float32Array) => {
    const { tokenIds, segments, promptLength, responseMask } = trajectory;
    if (!segments) {
      const at = sequences.push({ tokenIds, from: promptLength }) - 1;
      return (values) => values[at]!;
    }
    const places: { at: number; indices: Int32Array; from: number }[] = [];
    for (const { indices, own } of listPaths({ tokenIds, segments })) {
      const from = indices.findIndex((t, i) => i >= own && responseMask[t] === 1);
      if (from < 0) continue;
      const at = sequences.push({ tokenIds: indices.map((t) => tokenIds[t]!), from }) - 1;
      places.push({ at, indices, from });
    }
    return (values) => {
      const joined = new Float32Array(tokenIds.length);
      for (const { at, indices, from } of places)
        for (let i = from; i < indices.length; i++) joined[indices[i]!] = values[at]![i]!;
      return joined;
    };
  });
  return { sequences, join: (values) => joins.map((join) => join(values)) };
}

/**
 * Splits a trajectory into training sequences, one per conversation; each token is in the loss of only one. With
 * `withTotals`, column `trajectoryTokens` is the number of the whole trajectory's tokens in the loss.
 */
export function cutTrainSequences(
  { tokenIds, segments }: Tokens,
  lossMask: ArrayLike<number>,
  columns: Record<string, ArrayLike<number>>,
  withTotals: boolean,
): TrainSequence[] {
  const all: Record<string, ArrayLike<number>> = withTotals
    ? { ...columns, trajectoryTokens: new Float32Array(tokenIds.length).fill(countOnes(lossMask)) }
    : columns;
  if (!segments) return [{ tokenIds, lossMask, columns: all }];
  return listPaths({ tokenIds, segments }).flatMap(({ indices, own }) => {
    const cut = (values: ArrayLike<number>) => Float32Array.from(indices, (t, i) => (i >= own ? values[t]! : 0));
    const mask = Uint8Array.from(cut(lossMask));
    if (!mask.includes(1)) return [];
    const cutColumns = Object.fromEntries(Object.entries(all).map(([name, values]) => [name, cut(values)]));
    return [{ tokenIds: indices.map((t) => tokenIds[t]!), lossMask: mask, columns: cutColumns }];
  });
}

/**
 * The inverse: merges values of the conversations that `cutTrainSequences` returns for the same mask into values of the
 * trajectory's tokens. Tokens outside the loss have 0.
 */
export function joinTrainSequences(
  { tokenIds, segments }: Tokens,
  lossMask: ArrayLike<number>,
  values: readonly Float32Array[],
): Float32Array {
  if (!segments) return values[0]!;
  const joined = new Float32Array(tokenIds.length);
  let next = 0;
  for (const { indices, own } of listPaths({ tokenIds, segments })) {
    if (!indices.some((t, i) => i >= own && lossMask[t])) continue;
    const found = values[next++]!;
    for (let i = own; i < indices.length; i++) if (lossMask[indices[i]!]) joined[indices[i]!] = found[i]!;
  }
  return joined;
}
