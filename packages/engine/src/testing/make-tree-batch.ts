import type { TrainSequence } from "@cria/core";
import { makeNormals } from "./make-tiny-model.js";

/** Tokens of the sequences of `makeTreeBatch` together: each shared token once, then the separate sequence. */
export const TREE_TOKENS = 20 + (10 + 4 + 5) + (8 + 6 + 3);
export const LONE_TOKENS = 9;

/**
 * Sequences that share tokens at three levels: a prompt, two first turns after it, two second turns after each of
 * these. Two sequences are equal, one ends within a first turn, and one shares nothing. Each sequence scores shared
 * tokens with different weights; all have columns `weights` and `entropyWeights`. Their last token is scored.
 */
export function makeTreeBatch(seed = 5): TrainSequence[] {
  const normal = makeNormals(seed);
  const draw = (count: number) => Array.from({ length: count }, () => Math.abs(Math.floor(normal() * 1000)) % 256);
  const prompt = draw(20);
  const [first, second] = [draw(10), draw(8)];
  // The last token of a sequence is only predicted: the network does not evaluate it.
  const turns = (turn: number[], length: number) => [...prompt, ...turn, ...draw(length + 1)];
  const once = turns(first, 4);
  const sequences = [
    once,
    turns(second, 6),
    turns(first, 5),
    once,
    [...prompt, ...first.slice(0, 6)],
    turns(second, 3),
  ];
  sequences.push(draw(LONE_TOKENS + 1));
  return sequences.map((tokenIds) => ({
    tokenIds,
    lossMask: tokenIds.map((_, t) => (t === tokenIds.length - 1 || (t > 2 && t % 4 !== 1) ? 1 : 0)),
    columns: { weights: tokenIds.map(() => normal()), entropyWeights: tokenIds.map(() => 0.3 * normal()) },
  }));
}
