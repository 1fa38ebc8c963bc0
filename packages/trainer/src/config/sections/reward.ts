import { z } from "zod";
import {
  aggregationOptions,
  overlongOptions,
  rewardFunctionOptions,
  rewardModelOptions,
  rewardOptions,
} from "../options/rewards.js";

const { shape: overlong } = overlongOptions;
const { shape: aggregationShape } = aggregationOptions;
const { shape: judges } = rewardModelOptions;
const { shape: rewards } = rewardOptions;
const { shape: named } = rewardFunctionOptions;

const overlongBuffer = z.strictObject({
  enable: z
    .boolean()
    .default(false)
    .describe("With the manager dapo: penalise responses near the end of their budget."),
  len: overlong.length,
  penalty_factor: overlong.penaltyFactor,
  log: overlong.log,
});

const aggregation = z.strictObject({
  trajectory_weight: aggregationShape.trajectoryWeight,
  tool_weight: aggregationShape.toolWeight,
  interaction_weight: aggregationShape.interactionWeight,
  strategy: aggregationShape.strategy,
  gamma: aggregationShape.gamma,
  tool_call_weight: aggregationShape.toolCallWeight,
  text_weight: aggregationShape.textWeight,
});

const tokenReward = z.strictObject({
  enable: z.boolean().default(true).describe("false: no bonuses."),
  tool_call_bonus: aggregationShape.toolCallBonus,
  interaction_bonus: aggregationShape.interactionBonus,
});

const trajectoryReward = z.strictObject({
  enable: z.boolean().default(true).describe("false: the score stays as it is."),
  success_reward: aggregationShape.successReward,
  failure_reward: aggregationShape.failureReward,
  length_penalty: aggregationShape.lengthPenalty,
});

export const rewardModelSection = z.strictObject({
  enable: z.boolean().default(false).describe("Models score conversations, beside the rules."),
  model: judges.models,
  rule_weight: judges.ruleWeight,
  launch_reward_fn_async: judges.launchRewardFnAsync,
  reward_manager: rewards.manager,
  timeout_s: rewards.timeoutS,
  overlong_buffer: overlongBuffer.prefault({}),
  aggregation: aggregation.prefault({}),
  token_reward: tokenReward.prefault({}),
  trajectory_reward: trajectoryReward.prefault({}),
});

export const customRewardSection = z.strictObject({
  path: named.path,
  name: named.name,
  reward_kwargs: named.kwargs,
});
