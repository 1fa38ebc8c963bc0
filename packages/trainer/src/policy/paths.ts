import type { TrainSequence, Trajectory } from "@cria/core";
import { listPaths } from "@cria/core/internal";
import { countOnes } from "./flat-tokens.js";

type Tokens = Pick<Trajectory, "tokenIds" | "segments">;

/** Conversations to evaluate, and how what was computed of them belongs to the trajectories. */
export interface EvaluatedPaths {
  /** A trajectory of one conversation is one of them as it is. */
  sequences: { tokenIds: Int32Array; from: number }[];
  /** Of each trajectory, as long as its tokens; a token that several conversations share has its value once. */
  join(values: readonly Float32Array[]): Float32Array[];
}

/** The conversations of trajectories, evaluated from the first token on that was sampled. */
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
 * What a trajectory is trained on: its conversations, each token in the loss of one alone. Column `trajectoryTokens` says how many
 * tokens of the whole trajectory are in the loss, where that is asked for.
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
 * The reverse: values of a trajectory's tokens from those of its conversations, as `cutTrainSequences` gives them with the same mask.
 * Tokens that are not in the loss have 0.
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
