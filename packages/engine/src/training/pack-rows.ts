/**
 * Packs sequences into rows of a micro-batch. Sequences with the same beginning may share a row, which is then the
 * radix tree of their tokens in depth-first order: a token that several of them share, at any depth, is stored once,
 * and the different parts follow as branches. Each token sees the same tokens at the same positions as in a separate
 * row.
 */

export interface PackedSequence {
  /** Index into the sequences. */
  index: number;
  /** Number of leading tokens that an earlier sequence of the row already contains. */
  shared: number;
  /** Place of the first remaining token in the row; they are adjacent. */
  start: number;
}

export interface PackedRow {
  /** In the order of their branches: after its shared tokens, each sequence leaves the path of the previous one. */
  sequences: PackedSequence[];
  /** Number of tokens in the row. */
  length: number;
}

/** Cost of a row's tokens and of pairs of them, in any common unit. */
export interface PackCost {
  perToken: number;
  perTokenPair: number;
  /** The pairs that count: those where one token sees the other (or itself), or all pairs of the row. */
  pairs: "seen" | "all";
}

/**
 * Packs rows with the least total cost, of at most `maxRowLength` tokens each, except for a longer sequence. In the
 * order of a tree's branches a row's sequences are neighbours, so only the cuts between rows have to be found.
 */
export function packRows(sequences: readonly Int32Array[], cost: PackCost, maxRowLength: number): PackedRow[] {
  const order = sequences.map((_, i) => i).sort((a, b) => compareTokens(sequences[a]!, sequences[b]!) || a - b);
  /**
   * Leading tokens that the i-th sequence in this order has in common with the previous one, which is the most with any
   * earlier one.
   */
  const shared = order.map((index, i) => (i > 0 ? countShared(sequences[order[i - 1]!]!, sequences[index]!) : 0));
  const starts = cutRows(
    order.map((index) => sequences[index]!.length),
    shared,
    cost,
    maxRowLength,
  );
  return starts.map((start, r) => layOut(sequences, order, shared, start, starts[r + 1] ?? order.length));
}

function compareTokens(a: Int32Array, b: Int32Array): number {
  const n = countShared(a, b);
  return n < a.length && n < b.length ? a[n]! - b[n]! : a.length - b.length;
}

function countShared(a: Int32Array, b: Int32Array): number {
  const limit = Math.min(a.length, b.length);
  let n = 0;
  while (n < limit && a[n] === b[n]) n++;
  return n;
}

/** Starts of the rows with the least total cost, found from the least cost of every head of the list. */
function cutRows(lengths: readonly number[], shared: readonly number[], cost: PackCost, maxRowLength: number) {
  const least = [0];
  const lastStart = [0];
  for (let end = 1; end <= lengths.length; end++) {
    least[end] = Number.POSITIVE_INFINITY;
    // Extends the row [start, end) to the front: its first sequence contributes all of its tokens, the others only
    // their unshared tokens.
    let tokens = 0;
    let seen = 0;
    for (let start = end - 1; start >= 0; start--) {
      const length = tokens + lengths[start]!;
      if (start < end - 1 && length > maxRowLength) break;
      const pairs = cost.pairs === "all" ? length * length : seen + countSeen(lengths[start]!);
      const total = least[start]! + length * cost.perToken + pairs * cost.perTokenPair;
      if (total < least[end]!) {
        least[end] = total;
        lastStart[end] = start;
      }
      // Without a shared token, a longer row gains nothing.
      if (shared[start] === 0) break;
      tokens += lengths[start]! - shared[start]!;
      seen += countSeen(lengths[start]!) - countSeen(shared[start]!);
    }
  }
  const starts: number[] = [];
  for (let end = lengths.length; end > 0; end = lastStart[end]!) starts.push(lastStart[end]!);
  return starts.reverse();
}

/** Number of pairs of a sequence's tokens in which the later one sees the earlier, or itself. */
function countSeen(length: number): number {
  return (length * (length + 1)) / 2;
}

function layOut(
  sequences: readonly Int32Array[],
  order: readonly number[],
  shared: readonly number[],
  first: number,
  last: number,
): PackedRow {
  let length = 0;
  const packed: PackedSequence[] = [];
  for (let i = first; i < last; i++) {
    const index = order[i]!;
    const sequence = { index, shared: i > first ? shared[i]! : 0, start: length };
    length += sequences[index]!.length - sequence.shared;
    packed.push(sequence);
  }
  return { sequences: packed, length };
}
