import { weighableTerms } from "@cria/algorithms/internal";
import { z } from "zod";

const weights = z.record(z.string(), z.number().min(0));

/** Weights of single rows in the terms of the loss. */
export const lossWeightOptions = z.strictObject({
  key: z
    .string()
    .default("data_source")
    .describe(
      "Field of each row that names an entry of rows: data_source, or a field of extra_info. The field may also be such an entry itself.",
    ),
  rows: z
    .record(z.string(), weights)
    .default({})
    .describe(
      `For each value of the field: weights of these rows in terms of the loss, of ${weighableTerms.join(", ")} or of loss_terms. A row of weight 0 is left out of a term's denominator too. What is not named has weight 1.`,
    ),
});

export type LossWeightOptions = z.infer<typeof lossWeightOptions>;

/** Weights of one row. */
export const lossWeights = weights;
