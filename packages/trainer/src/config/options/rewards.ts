import { rewardStrategies } from "@cria/algorithms";
import { rewardManagers } from "@cria/rollout";
import { z } from "zod";
import { rewardModelsSchema } from "../sections/reward-models-config.js";

/** A reward function by path. */
export const rewardFunctionOptions = z.strictObject({
  path: z
    .string()
    .nullable()
    .default(null)
    .describe("File of your reward function; TypeScript needs no build step. null: data sources, interactions, tools."),
  name: z.string().default("computeScore").describe("The function that it exports."),
  kwargs: z.record(z.string(), z.unknown()).default({}).describe("The function's last argument."),
});

/** A penalty for responses near the end of their budget. */
export const overlongOptions = z.strictObject({
  length: z.int().min(0).default(0).describe("Tokens at the end of the budget over which the penalty grows."),
  penaltyFactor: z.number().min(0).default(1).describe("The penalty of a response that uses up its budget."),
  log: z.boolean().default(false).describe("Write the penalty to metrics and dumps."),
});

/** `RewardAggregation`: turns scores into rewards on tokens. */
export const aggregationOptions = z.strictObject({
  trajectoryWeight: z.number().default(1).describe("Weight of the conversation's score."),
  toolWeight: z.number().default(1).describe("Weight of the rewards that tool calls earned."),
  interactionWeight: z.number().default(1).describe("Weight of the scores that interactions gave to turns."),
  strategy: z
    .string()
    .default("last_token")
    .meta({ description: "Which tokens get the conversation's score.", examples: rewardStrategies.names() }),
  gamma: z
    .number()
    .gt(0)
    .max(1)
    .default(0.99)
    .describe("With exponential_decay: share of the next token's reward that a token receives."),
  toolCallWeight: z.number().min(0).default(2).describe("With importance: weight of tokens in tool calls."),
  textWeight: z.number().min(0).default(0.5).describe("With importance: weight of other tokens."),
  toolCallBonus: z.number().default(0).describe("Added for each valid tool call."),
  interactionBonus: z.number().default(0).describe("Added for each interaction turn with a score above 0."),
  successReward: z
    .number()
    .nullable()
    .default(null)
    .describe("Replaces the score of a conversation that succeeds; null: the score stays."),
  failureReward: z
    .number()
    .nullable()
    .default(null)
    .describe("Replaces the score of a conversation that does not succeed; null: the score stays."),
  lengthPenalty: z
    .number()
    .max(0, "0 or less: it is added for each sampled token")
    .default(0)
    .describe("Added for each sampled token; 0 or less."),
});

/** Reward models that judge in addition to the rules. */
export const rewardModelOptions = z.strictObject({
  models: rewardModelsSchema.default([]).describe("Those models: a mapping, or a list of them."),
  ruleWeight: z
    .number()
    .default(1)
    .describe(
      "Weight of the rules (reward function, data source, interaction, tools) beside the models; 0: they are not asked.",
    ),
  launchRewardFnAsync: z
    .boolean()
    .default(true)
    .describe(
      "Models still judge while old_log_prob is computed; false, or on_failure refill: the step waits for them first.",
    ),
});

/** Judges of conversations, and the conversion of scores to rewards. */
export const rewardOptions = z.strictObject({
  function: rewardFunctionOptions.prefault({}),
  manager: z.string().default("naive").meta({
    description: "Reward manager: it calls the reward function, and may add penalties.",
    examples: rewardManagers.names(),
  }),
  timeoutS: z
    .number()
    .positive()
    .nullable()
    .default(300)
    .describe(
      "Seconds for each call of a reward function; null: no limit. A conversation whose call takes longer fails (rollout.on_failure).",
    ),
  overlong: overlongOptions.nullable().default(null),
  aggregation: aggregationOptions.prefault({}),
  /** Null: only the rules judge. */
  judges: rewardModelOptions.nullable().default(null),
});

export type RewardOptions = z.infer<typeof rewardOptions>;
