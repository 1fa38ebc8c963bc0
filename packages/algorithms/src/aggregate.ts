import { Registry } from "./registry.js";

export interface AggregateInputs {
  offsets: Int32Array;
  totals: { tokens: number; sequences: number };
}

/** The weight of each token in the mini-batch's loss; it must not depend on how the mini-batch is cut. */
export type Aggregation = (inputs: AggregateInputs) => Float64Array;

export const aggregations = new Registry<Aggregation>("loss_agg_mode");

/** Every token of the mini-batch counts the same. */
aggregations.register("token-mean", ({ offsets, totals }) =>
  new Float64Array(offsets.at(-1)!).fill(1 / Math.max(1, totals.tokens)),
);
