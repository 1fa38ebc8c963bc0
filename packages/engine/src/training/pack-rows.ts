/**
 * Packs sequences into rows of a micro-batch. Sequences that share a prefix (the samples of one prompt do) become one
 * row: the prefix once, then each remainder as a branch that sees the prefix and itself. What a token sees, and at
 * which position, is the same as alone; the prefix is evaluated once instead of n times.
 */

export interface PackInput {
  tokenIds: Int32Array;
  /** Indices t >= 1 of the tokens to score. */
  scored: Int32Array;
}

export interface PackedSequence {
  /** Index into the inputs. */
  index: number;
  /** Where the tokens after the prefix start in the row. */
  start: number;
  segment: number;
}

export interface PackedRow {
  prefixLength: number;
  sequences: PackedSequence[];
  /** Tokens of the row. */
  length: number;
}

/** Cost of a row: linear layers grow with tokens, attention with their square. Units cancel out. */
export interface PackCost {
  perToken: number;
  perTokenPair: number;
}

function countSharedPrefix(a: Int32Array, b: Int32Array, limit: number): number {
  let n = 0;
  while (n < limit && a[n] === b[n]) n++;
  return n;
}

function rowCost(length: number, cost: PackCost): number {
  return length * cost.perToken + length * length * cost.perTokenPair;
}

/** The sequences in `order`, cut into runs that share a first token, each run into rows where that is cheapest. */
export function packRows(inputs: readonly PackInput[], cost: PackCost, maxRowLength: number): PackedRow[] {
  const order = inputs
    .map((_, i) => i)
    .sort((a, b) => compareTokens(inputs[a]!.tokenIds, inputs[b]!.tokenIds) || a - b);
  const rows: PackedRow[] = [];
  let open: { members: number[]; prefix: number; length: number } | undefined;
  const close = () => {
    if (open) rows.push(layOut(inputs, open.members, open.members.length > 1 ? open.prefix : 0));
  };
  for (const index of order) {
    const tokens = inputs[index]!.tokenIds;
    if (open) {
      // At least one token must stay outside the prefix, so that every branch exists.
      const first = inputs[open.members[0]!]!.tokenIds;
      const limit = Math.min(open.prefix, tokens.length - 1, first.length - 1);
      const prefix = countSharedPrefix(first, tokens, limit);
      const remainders = open.members.reduce((sum, i) => sum + inputs[i]!.tokenIds.length - prefix, 0);
      const length = prefix + remainders + tokens.length - prefix;
      const apart = rowCost(open.length, cost) + rowCost(tokens.length, cost);
      if (prefix > 0 && length <= maxRowLength && rowCost(length, cost) < apart) {
        open.members.push(index);
        open.prefix = prefix;
        open.length = length;
        continue;
      }
      close();
    }
    open = { members: [index], prefix: tokens.length, length: tokens.length };
  }
  close();
  return rows;
}

function compareTokens(a: Int32Array, b: Int32Array): number {
  const n = Math.min(a.length, b.length);
  for (let i = 0; i < n; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

function layOut(inputs: readonly PackInput[], members: number[], prefixLength: number): PackedRow {
  const sequences: PackedSequence[] = [];
  let at = prefixLength;
  members.forEach((index, i) => {
    sequences.push({ index, start: at, segment: prefixLength > 0 ? i + 1 : 0 });
    at += inputs[index]!.tokenIds.length - prefixLength;
  });
  return { prefixLength, sequences, length: at };
}
