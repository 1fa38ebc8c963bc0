import { DataError } from "@cria/core";
import type { MiniBatch } from "./policy-loss.js";

/** (A - mean A)(logprob - mean logprob) of each token, means over the whole mini-batch. */
export function computeCovariances({ logprobs, advantages }: MiniBatch): Float64Array {
  const mean = (values: Float32Array) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  const meanLogprob = mean(logprobs);
  const meanAdvantage = mean(advantages);
  return Float64Array.from(logprobs, (logprob, i) => (advantages[i]! - meanAdvantage) * (logprob - meanLogprob));
}

/** Number of tokens in a share: rounded down, at least one. */
export function countShare(ratio: number, tokens: number): number {
  return Math.min(tokens, Math.max(1, Math.floor(ratio * tokens)));
}

/** @throws DataError when the mini-batch was not prepared. */
export function readPrepared(columns: Record<string, Float32Array>, name: string): Float32Array {
  const column = columns[name];
  if (column) return column;
  throw new DataError("is missing: the loss ranks tokens over the whole mini-batch", {
    code: "data/not-prepared",
    subject: `column ${name}`,
    received: Object.keys(columns).join(", "),
    remedy: "pass the mini-batch through preparePolicyLoss before training on it",
  });
}
