import { ConfigError } from "@cria/core";
import {
  aggregationOptions,
  overlongOptions,
  type RewardOptions,
  rewardFunctionOptions,
  rewardModelOptions,
  rewardOptions,
} from "../options/rewards.js";
import type { TrainConfig } from "../train-config.js";
import { trainKeys } from "./config-keys.js";

/**
 * Reads the reward options from a config. Keys beside a switch that is off have no effect.
 * @throws ConfigError for switches that exclude each other.
 */
export function importRewards(config: TrainConfig): RewardOptions {
  checkRewards(config);
  const { enable, overlong_buffer, token_reward, trajectory_reward } = config.reward_model;
  return {
    ...trainKeys.read(config, rewardOptions),
    function: trainKeys.read(config, rewardFunctionOptions),
    overlong: overlong_buffer.enable ? trainKeys.read(config, overlongOptions) : null,
    aggregation: {
      ...trainKeys.read(config, aggregationOptions),
      ...(token_reward.enable ? {} : { toolCallBonus: 0, interactionBonus: 0 }),
      ...(trajectory_reward.enable ? {} : { successReward: null, failureReward: null, lengthPenalty: 0 }),
    },
    judges: enable ? trainKeys.read(config, rewardModelOptions) : null,
  };
}

function checkRewards({ reward_model, actor_rollout_ref }: TrainConfig): void {
  const { enable, model, rule_weight, overlong_buffer, reward_manager } = reward_model;
  const refuse = (subject: string, summary: string, expected: string, received: string) =>
    new ConfigError(summary, { code: "config/bad-value", subject, expected, received });
  const section = "reward_model";
  if (overlong_buffer.enable && reward_manager === "naive")
    throw refuse(
      `${section}.overlong_buffer.enable`,
      "has no effect with this reward manager",
      `${section}.reward_manager: dapo`,
      reward_manager,
    );
  if (!enable) {
    if (rule_weight === 1) return;
    const summary = "weighs the rules beside models, of which there are none";
    throw refuse(`${section}.rule_weight`, summary, "1", String(rule_weight));
  }
  if (model.length === 0) throw refuse(`${section}.model`, "names no model", "a path or a base_url", "nothing");
  if (rule_weight === 0 && overlong_buffer.enable)
    throw refuse(`${section}.overlong_buffer.enable`, "is part of the rules, which are not asked", "false", "true");
  const { on_failure } = actor_rollout_ref.rollout;
  // A conversation that is sampled again would be judged without its group.
  if (on_failure === "refill" && model.some(({ type }) => type === "group_rank"))
    throw refuse(
      "actor_rollout_ref.rollout.on_failure",
      "does not go with a reward model of type group_rank",
      "drop or error",
      on_failure,
    );
}
