import type { LossFunction } from "@cria/core";

/**
 * Negative mean logprob of the masked-in tokens: supervised fine-tuning. A column `weights` scales each token's share;
 * the denominator is always the number of tokens, so that a weight of 0 equals a loss of 0.
 */
export const crossEntropyLoss: LossFunction = ({ logprobs, columns, totals }) => {
  const share = 1 / Math.max(1, totals.tokens);
  const dLogprobs = new Float32Array(logprobs.length);
  let loss = 0;
  for (let i = 0; i < logprobs.length; i++) {
    const weight = share * (columns.weights?.[i] ?? 1);
    loss -= weight * logprobs[i]!;
    dLogprobs[i] = -weight;
  }
  return { loss, dLogprobs };
};
