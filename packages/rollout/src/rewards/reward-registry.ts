import { ConfigError } from "@cria/core";
import type { RewardFunction } from "./reward-function.js";

const rewards = new Map<string, RewardFunction>();

/** Rows with this `data_source` are judged by `reward`, unless the config names a function of its own. */
export function registerReward(dataSource: string, reward: RewardFunction): void {
  rewards.set(dataSource, reward);
}

export function findReward(dataSource: string): RewardFunction | undefined {
  return rewards.get(dataSource);
}

/** Routes by `data_source`. @throws ConfigError when no reward is registered for a source. */
export const routeReward: RewardFunction = (dataSource, ...rest) => {
  const reward = rewards.get(dataSource);
  if (reward) return reward(dataSource, ...rest);
  throw makeUnknownSource(dataSource);
};

/** @param place the row that has it, if one is to blame. */
export function makeUnknownSource(dataSource: string, place?: string): ConfigError {
  return new ConfigError("has no reward", {
    code: "config/unknown-data-source",
    subject: `${place === undefined ? "" : `${place}: `}data_source "${dataSource}"`,
    expected: `one of ${[...rewards.keys()].join(", ")}, or a tool or an interaction that scores the trajectory`,
    remedy: "set custom_reward_function.path, or call registerReward for this data source",
  });
}
