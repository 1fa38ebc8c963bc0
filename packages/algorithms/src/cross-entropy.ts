import type { LossFunction } from "@cria/core";

/** Negative mean logprob of the masked-in tokens: supervised fine-tuning. */
export const crossEntropyLoss: LossFunction = ({ logprobs, totals }) => {
  const weight = 1 / Math.max(1, totals.tokens);
  let loss = 0;
  for (const logprob of logprobs) loss -= weight * logprob;
  return { loss, dLogprobs: new Float32Array(logprobs.length).fill(-weight) };
};
