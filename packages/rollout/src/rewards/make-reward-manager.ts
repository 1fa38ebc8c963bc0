import { ConfigError } from "@cria/core";
import { BatchRewardManager } from "./batch-reward-manager.js";
import { DapoRewardManager } from "./dapo-reward-manager.js";
import { NaiveRewardManager } from "./naive-reward-manager.js";
import type { RewardManager, RewardManagerOptions } from "./reward-manager.js";

export type RewardManagerFactory = (options: RewardManagerOptions) => RewardManager;

const factories = new Map<string, RewardManagerFactory>([
  ["naive", (options) => new NaiveRewardManager(options)],
  ["dapo", (options) => new DapoRewardManager(options)],
  ["batch", (options) => new BatchRewardManager(options)],
]);

export function listRewardManagers(): string[] {
  return [...factories.keys()];
}

export function registerRewardManager(name: string, factory: RewardManagerFactory): void {
  factories.set(name, factory);
}

/** @throws ConfigError when no manager has this name, or its options contradict each other. */
export function makeRewardManager(name: string, options: RewardManagerOptions = {}): RewardManager {
  const factory = factories.get(name);
  if (factory) return factory(options);
  throw new ConfigError("is not a reward manager", {
    code: "config/unknown-name",
    subject: "reward_model.reward_manager",
    expected: [...factories.keys()].join(", "),
    received: name,
    remedy: "use one of these, or call registerRewardManager",
  });
}
