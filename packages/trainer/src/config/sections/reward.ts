import { rewardStrategies } from "@cria/algorithms";
import { rewardManagers } from "@cria/rollout";
import { z } from "zod";
import { rewardModelsSchema } from "./reward-models-config.js";

const overlongBuffer = z.strictObject({
  enable: z
    .boolean()
    .default(false)
    .describe("With the manager dapo: penalise responses near the end of their budget."),
  len: z.int().min(0).default(0).describe("Tokens at the end of the budget over which the penalty grows."),
  penalty_factor: z.number().min(0).default(1).describe("The penalty where the budget is used up."),
  log: z.boolean().default(false).describe("The penalty stands in metrics and dumps."),
});

const aggregation = z.strictObject({
  trajectory_weight: z.number().default(1).describe("Weight of the conversation's score."),
  tool_weight: z.number().default(1).describe("Weight of the rewards that tool calls earned."),
  interaction_weight: z.number().default(1).describe("Weight of the scores that interactions gave to turns."),
  strategy: z
    .string()
    .default("last_token")
    .meta({ description: "Which tokens get the conversation's score.", examples: rewardStrategies.names() }),
  gamma: z.number().gt(0).max(1).default(0.99).describe("Of exponential_decay: what a token gets of the next one's."),
  tool_call_weight: z.number().min(0).default(2).describe("Of importance: weight of tokens of tool calls."),
  text_weight: z.number().min(0).default(0.5).describe("Of importance: weight of other tokens."),
});

const tokenReward = z.strictObject({
  enable: z.boolean().default(true).describe("false: no bonuses."),
  tool_call_bonus: z.number().default(0).describe("Added for each valid tool call."),
  interaction_bonus: z.number().default(0).describe("Added for each interaction turn with a score above 0."),
});

const trajectoryReward = z.strictObject({
  enable: z.boolean().default(true).describe("false: the score stays as it is."),
  success_reward: z
    .number()
    .nullable()
    .default(null)
    .describe("Instead of the score of a conversation that succeeds; null: the score stays."),
  failure_reward: z
    .number()
    .nullable()
    .default(null)
    .describe("Instead of the score of a conversation that does not; null: the score stays."),
  length_penalty: z
    .number()
    .max(0, "0 or less: it is added for each sampled token")
    .default(0)
    .describe("Added for each sampled token; 0 or less."),
});

export const rewardModelSection = z.strictObject({
  enable: z.boolean().default(false).describe("Models score conversations, beside the rules."),
  model: rewardModelsSchema.default([]).describe("Those models: a mapping, or a list of them."),
  rule_weight: z
    .number()
    .default(1)
    .describe(
      "Weight of the rules (reward function, data source, interaction, tools) beside the models; 0: they are not asked.",
    ),
  launch_reward_fn_async: z
    .boolean()
    .default(true)
    .describe(
      "Models still judge while old_log_prob is computed; false, or on_failure refill: the step waits for them first.",
    ),
  reward_manager: z
    .string()
    .default("naive")
    .meta({ description: "Who calls the reward function, and what is added.", examples: rewardManagers.names() }),
  timeout_s: z
    .number()
    .positive()
    .nullable()
    .default(300)
    .describe(
      "Seconds for each call of a reward function; null: no limit. What takes longer fails (rollout.on_failure).",
    ),
  overlong_buffer: overlongBuffer.prefault({}),
  aggregation: aggregation.prefault({}),
  token_reward: tokenReward.prefault({}),
  trajectory_reward: trajectoryReward.prefault({}),
});

export const customRewardSection = z.strictObject({
  path: z
    .string()
    .nullable()
    .default(null)
    .describe("File of your reward function; TypeScript needs no build step. null: data sources, interactions, tools."),
  name: z.string().default("computeScore").describe("The function that it exports."),
  reward_kwargs: z.record(z.string(), z.unknown()).default({}).describe("The function's last argument."),
});
