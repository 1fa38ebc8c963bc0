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

/** Growth of the conversations of a prompt as trees, in training. */
export const treeOptions = z.strictObject({
  rounds: z
    .int()
    .min(1)
    .default(1)
    .describe(
      "With expansions: rounds in which a tree grows. Those after the first also go on from the turns of earlier rounds.",
    ),
  expansions: z
    .int()
    .min(0)
    .default(0)
    .describe(
      "Conversations that each tree gains in a round: each goes on from the end of a drawn turn of the tree, with its tokens and the state of its tools (docs/trees.md). A tree has 1 + rounds x expansions conversations, and rollout.n is a multiple of that. 0: no trees.",
    ),
});
