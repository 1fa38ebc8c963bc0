import type { LikeliestTokens, TrainCandidates, TrainSequence, Trajectory } from "@cria/core";
import { listPaths, pickRows } from "@cria/core/internal";
import { countOnes } from "./flat-tokens.js";

type Tokens = Pick<Trajectory, "tokenIds" | "segments">;

/** Conversations to evaluate, and a function that maps their values back to the trajectories. */
export interface EvaluatedPaths {
  /** One sequence per conversation; a trajectory without branches is one conversation. */
  sequences: { tokenIds: Int32Array; from: number }[];
  /** The index of each sequence's trajectory. */
  owners: number[];
  /**
   * Returns values of each trajectory, as long as its tokens; a token shared by several conversations has one value.
   */
  join(values: readonly Float32Array[]): Float32Array[];
  /** The same for the likeliest tokens in place of each. */
  joinLikeliest(lists: readonly LikeliestTokens[]): LikeliestTokens[];
}

/** The positions of a trajectory's values: in one evaluated sequence, or in places of several. */
type Layout = { at: number } | { places: readonly Place[]; tokens: number };

/** Tokens of an evaluated sequence from index `from` on, and their indices in the trajectory. */
interface Place {
  at: number;
  indices: Int32Array;
  from: number;
}

/** Lists the conversations of trajectories. The evaluation of each starts at the first sampled token of its own. */
export function evaluatePaths(
  trajectories: readonly (Tokens & Pick<Trajectory, "promptLength" | "responseMask">)[],
): EvaluatedPaths {
  const sequences: EvaluatedPaths["sequences"] = [];
  const owners: number[] = [];
  const layouts = trajectories.map((trajectory, owner): Layout => {
    const { tokenIds, segments, promptLength, responseMask } = trajectory;
    if (!segments) {
      owners.push(owner);
      return { at: sequences.push({ tokenIds, from: promptLength }) - 1 };
    }
    const places: Place[] = [];
    for (const { indices, own } of listPaths({ tokenIds, segments })) {
      const from = indices.findIndex((t, i) => i >= own && responseMask[t] === 1);
      if (from < 0) continue;
      owners.push(owner);
      const at = sequences.push({ tokenIds: indices.map((t) => tokenIds[t]!), from }) - 1;
      places.push({ at, indices, from });
    }
    return { places, tokens: tokenIds.length };
  });
  return {
    sequences,
    owners,
    join: (values) =>
      layouts.map((layout) =>
        "at" in layout
          ? values[layout.at]!
          : copyPlaces(layout.places, (at) => values[at]!, new Float32Array(layout.tokens), 1),
      ),
    joinLikeliest: (lists) => {
      const count = lists[0]?.count ?? 0;
      return layouts.map((layout) => {
        if ("at" in layout) return lists[layout.at]!;
        const { places, tokens } = layout;
        const ids = copyPlaces(places, (at) => lists[at]!.ids, new Int32Array(tokens * count), count);
        const logprobs = copyPlaces(places, (at) => lists[at]!.logprobs, new Float32Array(tokens * count), count);
        return { count, ids, logprobs };
      });
    },
  };
}

/** Copies values of the evaluated sequences, `width` for each token, to the trajectory's tokens. */
function copyPlaces<Values extends Float32Array | Int32Array>(
  places: readonly Place[],
  read: (at: number) => Values,
  joined: Values,
  width: number,
): Values {
  for (const { at, indices, from } of places) {
    const values = read(at);
    for (let i = from; i < indices.length; i++)
      joined.set(values.subarray(i * width, (i + 1) * width), indices[i]! * width);
  }
  return joined;
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
  candidates?: TrainCandidates,
): TrainSequence[] {
  const all: Record<string, ArrayLike<number>> = withTotals
    ? { ...columns, trajectoryTokens: new Float32Array(tokenIds.length).fill(countOnes(lossMask)) }
    : columns;
  if (!segments) return [{ tokenIds, lossMask, columns: all, ...(candidates ? { candidates } : {}) }];
  return listPaths({ tokenIds, segments }).flatMap(({ indices, own }) => {
    const cut = (values: ArrayLike<number>) => Float32Array.from(indices, (t, i) => (i >= own ? values[t]! : 0));
    const mask = Uint8Array.from(cut(lossMask));
    if (!mask.includes(1)) return [];
    const cutColumns = Object.fromEntries(Object.entries(all).map(([name, values]) => [name, cut(values)]));
    const others = candidates ? { candidates: cutCandidates(candidates, indices) } : {};
    return [{ tokenIds: indices.map((t) => tokenIds[t]!), lossMask: mask, columns: cutColumns, ...others }];
  });
}

/** The candidates of one conversation, of which `indices` are the tokens. */
function cutCandidates({ count, ids, columns }: TrainCandidates, indices: Int32Array): TrainCandidates {
  return {
    count,
    ids: pickRows(ids, indices, count),
    columns: Object.fromEntries(
      Object.entries(columns).map(([name, values]) => [name, pickRows(values, indices, count)]),
    ),
  };
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
