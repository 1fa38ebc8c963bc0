import { basename } from "node:path";
import { aggregateReward, type RewardAggregation } from "@cria/algorithms";
import { ConfigError } from "@cria/core";
import {
  type BatchRewardFunction,
  checkRowHasReward,
  type DatasetRow,
  loadExport,
  makeRewardManager,
  type PossibleScores,
  type RewardAggregator,
  type RewardFunction,
  type RewardManager,
  type RewardManagerOptions,
} from "@cria/rollout";
import { resolvePath } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import type { Registries } from "../user-code/registries.js";
import { JudgedRewards } from "./judged-rewards.js";
import { openRewardModels } from "./open-reward-models.js";

export interface OpenRewardsOptions extends Omit<PossibleScores, "agentLoops" | "rewards"> {
  /** The run's. */
  registries: Pick<Registries, "agentLoops" | "rewards" | "rewardManagers">;
  responseLength: number;
  /** In place of the one that the config names. */
  reward?: RewardFunction;
  /** All that the run may roll out, for training and for validation. */
  rows: readonly DatasetRow[];
}

/** @throws ConfigError when the function cannot be loaded, the manager is unknown, or a row's data source has no reward. */
export async function openRewards(
  config: TrainConfig,
  folder: string,
  { responseLength, rows, registries, reward: given, ...scores }: OpenRewardsOptions,
): Promise<RewardManager> {
  const { reward_model } = config;
  const { path, name, reward_kwargs } = config.custom_reward_function;
  const named = path === null ? null : await loadExport(resolvePath(folder, path), name, "custom_reward_function");
  const reward = given ?? named;
  if (!reward && asksRules(reward_model)) for (const row of rows) checkRowHasReward(row, { ...scores, ...registries });
  const { enable, len, penalty_factor, log } = reward_model.overlong_buffer;
  if (enable && reward_model.reward_manager === "naive")
    throw new ConfigError("has no effect with this reward manager", {
      code: "config/bad-value",
      subject: "reward_model.overlong_buffer.enable",
      expected: "reward_model.reward_manager: dapo",
      received: reward_model.reward_manager,
    });
  const options: RewardManagerOptions = {
    reward: reward as RewardFunction | BatchRewardFunction | null,
    rewards: registries.rewards,
    rewardName: path === null ? undefined : `${name} of ${basename(path)}`,
    kwargs: reward_kwargs,
    timeoutS: reward_model.timeout_s,
    responseLength,
    overlongBuffer: enable ? { length: len, penaltyFactor: penalty_factor, log } : null,
  };
  return makeRewardManager(reward_model.reward_manager, options, registries.rewardManagers);
}

/**
 * The same rewards together with those of the models that the config names; null where it names none.
 * @throws ConfigError when nothing would be scored, or a model's entry is wrong; EngineError when it cannot be loaded.
 */
export async function openJudgedRewards(
  config: TrainConfig,
  folder: string,
  rules: RewardManager,
): Promise<JudgedRewards | null> {
  const { enable, model, rule_weight, overlong_buffer } = config.reward_model;
  const refuse = (key: string, summary: string, expected: string, received: string) =>
    new ConfigError(summary, { code: "config/bad-value", subject: `reward_model.${key}`, expected, received });
  if (!enable) {
    if (rule_weight === 1) return null;
    throw refuse("rule_weight", "weighs the rules beside models, of which there are none", "1", String(rule_weight));
  }
  if (model.length === 0) throw refuse("model", "names no model", "a path or a base_url", "nothing");
  if (rule_weight === 0 && overlong_buffer.enable)
    throw refuse("overlong_buffer.enable", "is part of the rules, which are not asked", "false", "true");
  const { on_failure } = config.actor_rollout_ref.rollout;
  if (on_failure === "refill" && model.some(({ type }) => type === "group_rank")) {
    // A conversation that is sampled again would be judged without its group.
    throw new ConfigError("does not go with a reward model of type group_rank", {
      code: "config/bad-value",
      subject: "actor_rollout_ref.rollout.on_failure",
      expected: "drop or error",
      received: on_failure,
    });
  }
  const models = await openRewardModels(config, folder);
  return new JudgedRewards({ rules, ruleWeight: rule_weight, models });
}

function asksRules({ enable, rule_weight }: TrainConfig["reward_model"]): boolean {
  return !enable || rule_weight !== 0;
}

/** How a config's `reward_model` puts rewards on tokens: weights, strategy, bonuses, penalties. */
export function makeRewardAggregator(rewardModel: TrainConfig["reward_model"]): RewardAggregator {
  const options = makeRewardAggregation(rewardModel);
  return (earned) => aggregateReward(earned, options);
}

function makeRewardAggregation({
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
