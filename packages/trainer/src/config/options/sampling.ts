import { z } from "zod";

/** Truncation of a sampling distribution. */
const makeTruncation = () => ({
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

/** Conversations of a prompt in training. */
export const samplingOptions = z.strictObject({
  n: z
    .int()
    .positive()
    .default(8)
    .describe("Conversations sampled of each prompt in training; a row's __rollout_n__ overrides this."),
  temperature: z
    .number()
    .positive()
    .default(1)
    .describe("Sampling temperature in training; logprobs are computed at this temperature."),
  ...makeTruncation(),
});

/** Conversations of a prompt in validation. */
export const validationOptions = z.strictObject({
  n: z.int().positive().default(1).describe("Samples of each prompt; a row's __rollout_n__ overrides this."),
  temperature: z.number().min(0).default(1).describe("Sampling temperature, with do_sample."),
  ...makeTruncation(),
});

/** Steps that are sampled while earlier ones are learned from. */
export const aheadOptions = z.strictObject({
  lag: z
    .int()
    .min(0)
    .default(1)
    .describe(
      "Lag in steps: number of updates between sampling a step and learning from it. So many versions of the trained weights, and one more, stay in memory.",
    ),
  partialRollout: z
    .enum(["carry_on", "switch", "switch_keep_kv"])
    .default("carry_on")
    .describe(
      "With a lag, for conversations that an update finds unfinished. carry_on: the version that began a conversation samples all of it, and results depend only on the lag. switch: the newest version samples the next turn, so that samples are younger; results then depend on the clock. Each turn's version is in the dump. switch_keep_kv: the same, with the keys and values of the earlier versions, so that nothing is evaluated again.",
    ),
});

export type AheadSettings = z.infer<typeof aheadOptions>;

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
