import type { RewardAggregation } from "@cria/algorithms";
import { ConfigError } from "@cria/core";
import {
  type BatchRewardFunction,
  type DatasetRow,
  findReward,
  loadExport,
  makeRewardManager,
  makeUnknownSource,
  type RewardFunction,
  type RewardManager,
} from "@cria/rollout";
import { resolvePath } from "../config/load-config.js";
import type { TrainConfig } from "../config/train-config.js";

export interface OpenRewardsOptions {
  responseLength: number;
  rows: readonly DatasetRow[];
  /** Whether a tool or an interaction may score what no reward function does. */
  hasOtherScores: boolean;
}

/** @throws ConfigError when the function cannot be loaded, the manager is unknown, or a data source has no reward. */
export async function openRewards(
  config: TrainConfig,
  folder: string,
  { responseLength, rows, hasOtherScores }: OpenRewardsOptions,
): Promise<RewardManager> {
  const { reward_model } = config;
  const { path, name, reward_kwargs } = config.custom_reward_function;
  const reward = path === null ? null : await loadExport(resolvePath(folder, path), name, "custom_reward_function");
  if (!reward && !hasOtherScores) {
    const unknown = rows.find((row) => !findReward(row.dataSource) && !row.extraInfo.interaction_kwargs);
    if (unknown) throw makeUnknownSource(unknown.dataSource);
  }
  const { enable, len, penalty_factor, log } = reward_model.overlong_buffer;
  if (enable && reward_model.reward_manager === "naive")
    throw new ConfigError("has no effect with this reward manager", {
      code: "config/bad-value",
      subject: "reward_model.overlong_buffer.enable",
      expected: "reward_model.reward_manager: dapo",
      received: reward_model.reward_manager,
    });
  return makeRewardManager(reward_model.reward_manager, {
    reward: reward as RewardFunction | BatchRewardFunction | null,
    kwargs: reward_kwargs,
    timeoutS: reward_model.timeout_s,
    responseLength,
    overlongBuffer: enable ? { length: len, penaltyFactor: penalty_factor, log } : null,
  });
}

/** How a config's `reward_model` puts rewards on tokens. */
export function makeRewardAggregation({
  aggregation,
  token_reward,
  trajectory_reward,
}: TrainConfig["reward_model"]): RewardAggregation {
  return {
    trajectoryWeight: aggregation.trajectory_weight,
    toolWeight: aggregation.tool_weight,
    interactionWeight: aggregation.interaction_weight,
    strategy: aggregation.strategy,
    gamma: aggregation.gamma,
    toolCallWeight: aggregation.tool_call_weight,
    textWeight: aggregation.text_weight,
    toolCallBonus: token_reward.enable ? token_reward.tool_call_bonus : 0,
    interactionBonus: token_reward.enable ? token_reward.interaction_bonus : 0,
    successReward: trajectory_reward.enable ? trajectory_reward.success_reward : null,
    failureReward: trajectory_reward.enable ? trajectory_reward.failure_reward : null,
    lengthPenalty: trajectory_reward.enable ? trajectory_reward.length_penalty : 0,
  };
}
