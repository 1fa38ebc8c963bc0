import type { CandidateTokens, MicroBatchShard, ShardImage } from "@cria/core";
import type { ImageStore } from "../images/image-store.js";
import { numberByHash, numberByPlace } from "./number-images.js";
import { type PackCost, type PackedRow, packRows } from "./pack-rows.js";

export interface PlanInput {
  tokenIds: Int32Array;
  /** Indices t >= 1 of the tokens to score. */
  scored: Int32Array;
  /** Further tokens to score in place of each scored one: all inputs have as many, or none has any. */
  candidates?: CandidateTokens;
}

/** A micro-batch for the addon, and the scored tokens of input sequences that it holds, in order. */
export interface PlannedMicroBatch {
  microBatch: MicroBatchShard & { adapter: boolean };
  sequenceIndices: Int32Array;
  /** Scored tokens of the i-th of `sequenceIndices` are [offsets[i], offsets[i + 1]). */
  offsets: Int32Array;
  /**
   * For each scored token, the index of its score among the addon's: sequences that score the same token, with the same
   * candidates, after the same tokens share one.
   */
  scores: Int32Array;
}

export interface PlanOptions {
  /** Most tokens of one micro-batch, padding included (a longer row still gets its own micro-batch). */
  maxTokens: number;
  cost: PackCost;
  temperature: number;
  adapter: boolean;
  /** Finds the images of the vectors, whose token ids start at `firstId`. Absent: all tokens are text. */
  images?: Pick<ImageStore, "find" | "firstId">;
}

/** Cuts sequences into micro-batches of rows of similar length; leaves out sequences without scored tokens. */
export function planMicroBatches(inputs: readonly PlanInput[], options: PlanOptions): PlannedMicroBatch[] {
  const kept = inputs.map((input, index) => ({ input, index, needed: cutUnread(input) })).filter(hasScored);
  const sequences = kept.map(({ needed }) => needed);
  const numbered = options.images ? numberByHash(sequences, options.images) : { sequences, images: [] };
  numbered.sequences.forEach((needed, i) => {
    kept[i]!.needed = needed;
  });
  const rows = packRows(numbered.sequences, options.cost, options.maxTokens).sort((a, b) => b.length - a.length);
  const plans: PlannedMicroBatch[] = [];
  let batch: PackedRow[] = [];
  const flush = () => {
    if (batch.length > 0) plans.push(buildMicroBatch(batch, kept, numbered.images, options));
    batch = [];
  };
  for (const row of rows) {
    // Rows are sorted longest first, so the first row's length is the padded length of all.
    const padded = batch.length > 0 ? batch[0]!.length : row.length;
    if (batch.length > 0 && ((batch.length + 1) * padded > options.maxTokens || row.length < padded * 0.6)) flush();
    batch.push(row);
  }
  flush();
  return plans;
}

interface KeptSequence {
  input: PlanInput;
  index: number;
  /** The tokens that the network evaluates. */
  needed: Int32Array;
}

/** Cuts the last scored token and everything after it, whose hidden states are not read. */
function cutUnread({ tokenIds, scored }: PlanInput): Int32Array {
  return tokenIds.subarray(0, scored.at(-1) ?? 0);
}

function hasScored({ input }: KeptSequence): boolean {
  return input.scored.length > 0;
}

function buildMicroBatch(
  rows: PackedRow[],
  kept: readonly KeptSequence[],
  images: readonly ShardImage[],
  options: PlanOptions,
): PlannedMicroBatch {
  // A multiple of the vector width, which ggml's fast products need in every axis that they sum over.
  const rowLength = Math.ceil(Math.max(...rows.map((row) => row.length)) / 8) * 8;
  const size = rows.length * rowLength;
  const tokens = new Int32Array(size);
  const positions = new Int32Array(size);
  const ends = new Int32Array(size);
  const sources: number[] = [];
  const targets: number[] = [];
  const candidates: Int32Array[] = [];
  const scores: number[] = [];
  const sequenceIndices: number[] = [];
  const offsets = [0];
  rows.forEach((row, r) => {
    const base = r * rowLength;
    /** Places of the current sequence's tokens, and the addon's scores that each of them predicts. */
    const path: { place: number; scores: number[] }[] = [];
    for (const { index, shared, start } of row.sequences) {
      const { input, needed, index: original } = kept[index]!;
      for (const { place } of path.splice(shared)) ends[place] = start;
      for (let t = shared; t < needed.length; t++) {
        const place = base + start + t - shared;
        tokens[place] = needed[t]!;
        positions[place] = t;
        path.push({ place, scores: [] });
      }
      for (const t of input.scored) {
        const source = path[t - 1]!;
        const target = input.tokenIds[t]!;
        const others = listCandidates(input, t);
        let score = source.scores.find((other) => targets[other] === target && areEqual(candidates[other]!, others));
        if (score === undefined) {
          score = targets.length;
          source.scores.push(score);
          sources.push(source.place);
          targets.push(target);
          candidates.push(others);
        }
        scores.push(score);
      }
      sequenceIndices.push(original);
      offsets.push(scores.length);
    }
    for (const { place } of path) ends[place] = row.length;
  });
  const shown = numberByPlace(tokens, images);
  return {
    microBatch: {
      rows: rows.length,
      rowLength,
      tokens,
      positions,
      ends,
      sources: Int32Array.from(sources),
      targets: Int32Array.from(targets),
      ...(candidates[0]!.length > 0 ? { candidates: concatenate(candidates) } : {}),
      temperature: options.temperature,
      adapter: options.adapter,
      ...(shown.length > 0 ? { images: shown } : {}),
    },
    sequenceIndices: Int32Array.from(sequenceIndices),
    offsets: Int32Array.from(offsets),
    scores: Int32Array.from(scores),
  };
}

const none = new Int32Array(0);

function listCandidates({ candidates }: PlanInput, t: number): Int32Array {
  return candidates ? candidates.ids.subarray(t * candidates.count, (t + 1) * candidates.count) : none;
}

function areEqual(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((id, k) => id === b[k]);
}

function concatenate(lists: readonly Int32Array[]): Int32Array {
  const all = new Int32Array(lists.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const list of lists) {
    all.set(list, at);
    at += list.length;
  }
  return all;
}

/**
 * The gradient of each of the addon's `count` scores: the sum over the tokens that share it.
 * @param width number of values of each score.
 */
export function sumGradients(scores: Int32Array, count: number, gradients: ArrayLike<number>, width = 1): Float32Array {
  const sums = new Float32Array(count * width);
  scores.forEach((score, i) => {
    for (let k = 0; k < width; k++) sums[score * width + k]! += gradients[i * width + k]!;
  });
  return sums;
}
