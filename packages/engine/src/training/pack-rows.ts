/**
 * Packs sequences into rows of a micro-batch. Sequences that begin with the same tokens may share a row, which is then the
 * radix tree of their tokens, depth first: each token that several of them share, at whatever depth, is there once, and
 * what differs follows as branches. What a token sees, and at which position, is the same as alone.
 */

export interface PackedSequence {
  /** Index into the sequences. */
  index: number;
  /** Leading tokens that an earlier sequence of the row has put there. */
  shared: number;
  /** Where the other tokens start in the row; they lie together. */
  start: number;
}

export interface PackedRow {
  /** In the order of their branches: the next one leaves the path of the one before after its shared tokens. */
  sequences: PackedSequence[];
  /** Tokens of the row. */
  length: number;
}

/** Cost of a row: of its tokens, and of pairs of them. Units cancel out. */
export interface PackCost {
  perToken: number;
  perTokenPair: number;
  /** Of which pairs: those where one token sees the other (or itself), or all of the row. */
  pairs: "seen" | "all";
}

/**
 * Rows of least cost, of at most `maxRowLength` tokens each but for a sequence that is longer. In the order of a tree's
 * branches a row's sequences are neighbours, so that only the places of the cuts between rows are to be found.
 */
export function packRows(sequences: readonly Int32Array[], cost: PackCost, maxRowLength: number): PackedRow[] {
  const order = sequences.map((_, i) => i).sort((a, b) => compareTokens(sequences[a]!, sequences[b]!) || a - b);
  /** Leading tokens that the i-th in order has in common with the one before, thus the most with any before. */
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

/** Where the rows of least total cost start, by the least cost of every head of the list. */
function cutRows(lengths: readonly number[], shared: readonly number[], cost: PackCost, maxRowLength: number) {
  const least = [0];
  const lastStart = [0];
  for (let end = 1; end <= lengths.length; end++) {
    least[end] = Number.POSITIVE_INFINITY;
    // The row [start, end) grows to the front: its first sequence brings all of its tokens, the others what they alone have.
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
      // Without a shared token nothing is won.
      if (shared[start] === 0) break;
      tokens += lengths[start]! - shared[start]!;
      seen += countSeen(lengths[start]!) - countSeen(shared[start]!);
    }
  }
  const starts: number[] = [];
  for (let end = lengths.length; end > 0; end = lastStart[end]!) starts.push(lastStart[end]!);
  return starts.reverse();
}

/** Pairs of a sequence's tokens of which the later one sees the earlier, or itself. */
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
