import { ConfigError, Registry } from "@cria/core";
import { scoreFinalAnswer } from "./final-answer.js";
import type { RewardFunction } from "./reward-function.js";

/** By `data_source` of rows. */
export const rewardFunctions = new Registry<RewardFunction>("reward", {
  calculator: scoreFinalAnswer,
  "openai/gsm8k": scoreFinalAnswer,
});

/** Rows with this `data_source` are judged by `reward` in every run, unless the config names another function. */
export function registerReward(dataSource: string, reward: RewardFunction): void {
  rewardFunctions.register(dataSource, reward);
}

/**
 * @param known sources that have a reward.
 * @param place the row that has it.
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
