import type { NativeMicroBatch } from "../native-types.js";
import { type PackCost, type PackedRow, type PackInput, packRows } from "./pack-rows.js";

/** A micro-batch ready for the addon, and which scored tokens of which input sequences it holds, in order. */
export interface PlannedMicroBatch {
  native: NativeMicroBatch;
  sequenceIndices: Int32Array;
  /** Scored tokens of the i-th of `sequenceIndices` are [offsets[i], offsets[i + 1]). */
  offsets: Int32Array;
}

export interface PlanOptions {
  /** Most tokens of one micro-batch, padding included (one longer row still gets a micro-batch of its own). */
  maxTokens: number;
  cost: PackCost;
  temperature: number;
  adapter: boolean;
}

/** Cuts sequences into micro-batches of rows of similar length; sequences without scored tokens are left out. */
export function planMicroBatches(inputs: readonly PackInput[], options: PlanOptions): PlannedMicroBatch[] {
  const kept = inputs.map((input, index) => ({ input, index, needed: cutUnread(input) })).filter(hasScored);
  const rows = packRows(
    kept.map(({ needed }) => needed),
    options.cost,
    options.maxTokens,
  ).sort((a, b) => b.length - a.length);
  const plans: PlannedMicroBatch[] = [];
  let batch: PackedRow[] = [];
  const flush = () => {
    if (batch.length > 0) plans.push(buildMicroBatch(batch, kept, options));
    batch = [];
  };
  for (const row of rows) {
    // Rows come longest first, so the first row's length is the padded length of all.
    const padded = batch.length > 0 ? batch[0]!.length : row.length;
    if (batch.length > 0 && ((batch.length + 1) * padded > options.maxTokens || row.length < padded * 0.6)) flush();
    batch.push(row);
  }
  flush();
  return plans;
}

interface KeptSequence {
  input: PackInput;
  index: number;
  /** The tokens that go through the network. */
  needed: PackInput;
}

/** Nothing reads the hidden state of the last scored token, nor of what follows it. */
function cutUnread({ tokenIds, scored }: PackInput): PackInput {
  return { tokenIds: tokenIds.subarray(0, scored.at(-1) ?? 0), scored };
}

function hasScored({ input }: KeptSequence): boolean {
  return input.scored.length > 0;
}

function buildMicroBatch(rows: PackedRow[], kept: readonly KeptSequence[], options: PlanOptions): PlannedMicroBatch {
  // A multiple of the vector width: ggml's fast products need it in every axis that they sum over.
  const rowLength = Math.ceil(Math.max(...rows.map((row) => row.length)) / 8) * 8;
  const size = rows.length * rowLength;
  const tokens = new Int32Array(size);
  const positions = new Int32Array(size);
  const ends = new Int32Array(size);
  const sources: number[] = [];
  const targets: number[] = [];
  const sequenceIndices: number[] = [];
  const offsets = [0];
  rows.forEach((row, r) => {
    const base = r * rowLength;
    const first = kept[row.sequences[0]!.index]!.needed.tokenIds;
    for (let t = 0; t < row.prefixLength; t++) {
      tokens[base + t] = first[t]!;
      positions[base + t] = t;
      ends[base + t] = row.length;
    }
    for (const { index, start } of row.sequences) {
      const { input, needed, index: original } = kept[index]!;
      const place = (t: number) => (t < row.prefixLength ? base + t : base + start + t - row.prefixLength);
      for (let t = row.prefixLength; t < needed.tokenIds.length; t++) {
        tokens[place(t)] = needed.tokenIds[t]!;
        positions[place(t)] = t;
        ends[place(t)] = start + needed.tokenIds.length - row.prefixLength;
      }
      for (const t of input.scored) {
        sources.push(place(t - 1));
        targets.push(input.tokenIds[t]!);
      }
      sequenceIndices.push(original);
      offsets.push(sources.length);
    }
  });
  return {
    native: {
      rows: rows.length,
      rowLength,
      tokens,
      positions,
      ends,
      sources: Int32Array.from(sources),
      targets: Int32Array.from(targets),
      temperature: options.temperature,
      adapter: options.adapter,
    },
    sequenceIndices: Int32Array.from(sequenceIndices),
    offsets: Int32Array.from(offsets),
  };
}
