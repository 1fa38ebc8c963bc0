import { ConfigError, Registry } from "@cria/core";
import { scoreFinalAnswer } from "./final-answer.js";
import type { RewardFunction } from "./reward-function.js";

/** Reward functions by `data_source` of rows. */
export const rewardFunctions = new Registry<RewardFunction>("reward", {
  calculator: scoreFinalAnswer,
  "openai/gsm8k": scoreFinalAnswer,
});

/** Registers a reward for rows with this `data_source`, in every run whose config names no other function. */
export function registerReward(dataSource: string, reward: RewardFunction): void {
  rewardFunctions.register(dataSource, reward);
}

/**
 * @param known sources that have a reward.
 * @param place the row with this data source.
 */
export function makeUnknownSource(dataSource: string, known: readonly string[], place: string): ConfigError {
  return new ConfigError("has no reward", {
    code: "config/unknown-data-source",
    subject: `${place}: data_source "${dataSource}"`,
    expected: `one of ${known.join(", ")}, or a tool or an interaction that scores the trajectory`,
    remedy:
      "give the task a reward (in a config: custom_reward_function.path), or call registerReward for this data source",
  });
}
