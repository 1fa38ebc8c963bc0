import type { LossFunction, TrainSequence } from "@cria/core";

/** Rows of equal length whose second half is in the loss, like a policy gradient's. */
export interface Batch {
  /** `length + 1` ids a row: the last one is only predicted. */
  tokens: number[][];
  /** The first token in the loss. */
  first: number;
  advantages: number[];
}

/** Deterministic; with `sharedPrompt` the first halves are alike, as the samples of one prompt are. */
export function makeBatch(rows: number, length: number, vocabulary: number, sharedPrompt: boolean): Batch {
  let state = 12345;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const draw = (count: number) => Array.from({ length: count }, () => Math.floor(random() * vocabulary));
  const first = length / 2;
  const prompt = draw(first);
  const tokens = Array.from({ length: rows }, () => [
    ...(sharedPrompt ? prompt : draw(first)),
    ...draw(length + 1 - first),
  ]);
  return { tokens, first, advantages: Array.from({ length: rows }, (_, i) => (i % 2 ? -0.5 : 1)) };
}

export function toSequences({ tokens, first, advantages }: Batch): TrainSequence[] {
  return tokens.map((tokenIds, row) => ({
    tokenIds,
    lossMask: tokenIds.map((_, i) => (i >= first ? 1 : 0)),
    columns: { advantages: tokenIds.map(() => advantages[row]!) },
  }));
}

/** -mean(advantage * logprob): the gradient of GRPO's loss at its first update. */
export const policyGradient: LossFunction = ({ logprobs, columns, totals }) => {
  const advantages = columns.advantages!;
  const dLogprobs = new Float32Array(logprobs.length);
  let loss = 0;
  for (let i = 0; i < logprobs.length; i++) {
    loss -= (advantages[i]! * logprobs[i]!) / totals.tokens;
    dLogprobs[i] = -advantages[i]! / totals.tokens;
  }
  return { loss, dLogprobs };
};
