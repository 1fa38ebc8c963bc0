import { codeOf, nameWeights, type TermTokens, TOKEN_KIND } from "@cria/algorithms/internal";
import type { LossTotals, TrainSequence } from "@cria/core";
import { shuffleIndices } from "@cria/core/internal";
import { countOnes } from "./flat-tokens.js";

/** Weights of a row in the terms of the loss, by their names; terms that are not named have weight 1. */
export type LossWeights = Readonly<Record<string, number>>;

/** Conversations that every optimizer step also learns to repeat. */
export interface Demonstrations {
  /** Tokenized conversations; their masks are 1 on the tokens to learn. */
  sequences: readonly Pick<TrainSequence, "tokenIds" | "lossMask">[];
  /** Number of conversations of each optimizer step, drawn without repetition; at most all. */
  size: number;
}

/** Inputs of the loss for one mini-batch. */
export interface MiniBatchParts {
  /** Sequences with a gradient, trajectory after trajectory. */
  sequences: readonly TrainSequence[];
  /** Number of these of each trajectory of the mini-batch. */
  counts: readonly number[];
  /** Loss mask of each trajectory, including those without a sequence. */
  lossMasks: readonly ArrayLike<number>[];
  /** Weights of each trajectory's row; undefined: all are 1. */
  weights: readonly LossWeights[] | undefined;
  /** Marks of observed tokens of each sequence; null: no term sees them. */
  observed: readonly ArrayLike<number>[] | null;
  demonstrations: readonly Pick<TrainSequence, "tokenIds" | "lossMask">[];
  terms: readonly TermTokens[];
}

/**
 * Makes the batch of an optimizer step: adds observed tokens and demonstrations to the sampled ones, marks their kinds,
 * adds the weights of rows, and counts the tokens of each term.
 */
export function mixMiniBatch(parts: MiniBatchParts): { sequences: TrainSequence[]; totals: LossTotals } {
  const { observed, demonstrations, weights } = parts;
  const isMixed = observed !== null || demonstrations.length > 0;
  const shown = parts.sequences.map((sequence, s): TrainSequence => {
    if (!isMixed) return sequence;
    const { lossMask, kinds } = addObserved(sequence, observed?.[s]);
    return { ...sequence, lossMask, columns: { ...sequence.columns, [TOKEN_KIND]: kinds } };
  });
  const names = [...new Set(weights?.flatMap((own) => Object.keys(own)))];
  /** Index of the trajectory of each sequence. */
  const owners = parts.counts.flatMap((count, i) => new Array<number>(count).fill(i));
  const sampled = shown.map((sequence, s) => addWeights(sequence, names, weights?.[owners[s]!]));
  const demonstrated = demonstrations.map((sequence) => addWeights(showDemonstration(sequence, shown[0]), names, {}));
  return { sequences: [...sampled, ...demonstrated], totals: countTokens(parts, shown, owners) };
}

/** Counts the tokens of the loss, and those of terms that see others, of left-out trajectories too: their loss is 0. */
function countTokens(
  { terms, weights, lossMasks, demonstrations }: MiniBatchParts,
  shown: readonly TrainSequence[],
  owners: readonly number[],
): LossTotals {
  const tokens = lossMasks.map(countOnes);
  const observed = shown.map(({ columns }) => countObserved(columns?.[TOKEN_KIND]));
  const counted: [name: string, Omit<LossTotals, "terms">][] = [];
  for (const { name, tokens: kind } of terms) {
    const weighs = (i: number) => weights?.[i]?.[name] !== 0;
    if (kind === "demonstrated") counted.push([name, count(demonstrations.map(({ lossMask }) => countOnes(lossMask)))]);
    else if (kind === "observed") counted.push([name, count(observed.filter((_, s) => weighs(owners[s]!)))]);
    else if (!tokens.every((_, i) => weighs(i))) counted.push([name, count(tokens.filter((_, i) => weighs(i)))]);
  }
  return { ...count(tokens), ...(counted.length > 0 ? { terms: Object.fromEntries(counted) } : {}) };
}

/** Draws the demonstrations of an optimizer step. */
export function drawDemonstrations({ sequences, size }: Demonstrations, seed: number): Demonstrations["sequences"] {
  const drawn = shuffleIndices(sequences.length, seed).slice(-size).reverse();
  return Array.from(drawn, (index) => sequences[index]!);
}

/** The loss mask with observed tokens added, and the kind of each token. */
function addObserved({ lossMask: sampled }: TrainSequence, marks: ArrayLike<number> | undefined) {
  const kinds = new Float32Array(sampled.length);
  if (!marks) return { lossMask: sampled, kinds };
  const lossMask = Uint8Array.from(sampled);
  for (let t = 1; t < lossMask.length; t++) {
    if (!marks[t] || lossMask[t]) continue;
    lossMask[t] = 1;
    kinds[t] = codeOf("observed");
  }
  return { lossMask, kinds };
}

/** A demonstration as a sequence of the batch. @param other a sequence of it, with as many candidates. */
function showDemonstration(
  { tokenIds, lossMask }: Demonstrations["sequences"][number],
  other: TrainSequence | undefined,
): TrainSequence {
  const n = tokenIds.length;
  const columns = { [TOKEN_KIND]: new Float32Array(n).fill(codeOf("demonstrated")) };
  if (!other?.candidates) return { tokenIds, lossMask, columns };
  const { count, columns: ofCandidates } = other.candidates;
  const empty = Object.keys(ofCandidates).map((name) => [name, new Float32Array(n * count)]);
  return {
    tokenIds,
    lossMask,
    columns,
    candidates: { count, ids: new Int32Array(n * count), columns: Object.fromEntries(empty) },
  };
}

function addWeights(
  sequence: TrainSequence,
  names: readonly string[],
  weights: LossWeights | undefined,
): TrainSequence {
  if (names.length === 0) return sequence;
  const { length } = sequence.tokenIds;
  const columns = names.map((name) => [nameWeights(name), new Float32Array(length).fill(weights?.[name] ?? 1)]);
  return { ...sequence, columns: { ...sequence.columns, ...Object.fromEntries(columns) } };
}

function countObserved(kinds: ArrayLike<number> | undefined): number {
  const code = codeOf("observed");
  let observed = 0;
  for (let t = 0; t < (kinds?.length ?? 0); t++) if (kinds![t] === code) observed++;
  return observed;
}

const count = (tokens: readonly number[]) => ({
  tokens: tokens.reduce((sum, of) => sum + of, 0),
  sequences: tokens.filter((of) => of > 0).length,
});
