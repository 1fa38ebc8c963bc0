import { Registry } from "@cria/core";
import { BatchRewardManager } from "./batch-reward-manager.js";
import { DapoRewardManager } from "./dapo-reward-manager.js";
import { NaiveRewardManager } from "./naive-reward-manager.js";
import type { RewardManager, RewardManagerOptions } from "./reward-manager.js";

export type RewardManagerFactory = (options: RewardManagerOptions) => RewardManager;

/** Managers by `reward_model.reward_manager`. */
export const rewardManagers = new Registry<RewardManagerFactory>(
  "reward manager",
  {
    naive: (options) => new NaiveRewardManager(options),
    dapo: (options) => new DapoRewardManager(options),
    batch: (options) => new BatchRewardManager(options),
  },
  { subject: "reward_model.reward_manager", remedy: "use one of these, or call registerRewardManager" },
);

/** Registers a manager for every run; a later one of the same name replaces it. */
export function registerRewardManager(name: string, factory: RewardManagerFactory): void {
  rewardManagers.register(name, factory);
}

/**
 * @param managers registry of names; default: built-in and registered ones.
 * @throws ConfigError for an unknown name, or for contradictory options.
 */
export function makeRewardManager(
  name: string,
  options: RewardManagerOptions = {},
  managers = rewardManagers,
): RewardManager {
  return managers.get(name)(options);
}
