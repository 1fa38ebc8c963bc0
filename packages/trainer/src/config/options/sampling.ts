import { z } from "zod";

/** Truncation of the sampling distribution, in training and in validation. */
export const samplingOptions = z.strictObject({
  topP: z
    .number()
    .gt(0)
    .max(1)
    .default(1)
    .describe("Top-p: sample from the likeliest tokens whose probabilities add up to this."),
  minP: z
    .number()
    .min(0)
    .lt(1)
    .default(0)
    .describe(
      "Min-p: do not sample tokens whose probability is below this share of the likeliest token's; 0: no limit.",
    ),
});
