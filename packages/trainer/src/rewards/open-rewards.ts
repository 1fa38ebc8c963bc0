import { basename } from "node:path";
import { aggregateReward, type RewardAggregation } from "@cria/algorithms";
import {
  type BatchRewardFunction,
  type DatasetRow,
  makeRewardManager,
  type RewardAggregator,
  type RewardFunction,
  type RewardManager,
  type RewardManagerOptions,
} from "@cria/rollout";
import { checkRowHasReward, loadExport, type PossibleScores } from "@cria/rollout/internal";
import type { RewardOptions } from "../config/options/rewards.js";
import { resolvePath } from "../config/paths.js";
import type { Registries } from "../user-code/registries.js";
import { JudgedRewards } from "./judged-rewards.js";
import { type JudgeDevice, openRewardModels } from "./open-reward-models.js";

export interface OpenRewardsOptions extends Omit<PossibleScores, "agentLoops" | "rewards"> {
  /** Registries of the run. */
  registries: Pick<Registries, "agentLoops" | "rewards" | "rewardManagers">;
  responseLength: number;
  /** Replaces the reward function that the options name. */
  reward?: RewardFunction;
  /** All rows that the run may use, for training and for validation. */
  rows: readonly DatasetRow[];
}

/** @throws ConfigError when the function cannot be loaded, the manager is unknown, or a row's data source has no reward. */
export async function openRewards(
  { function: named, manager, timeoutS, overlong, judges }: RewardOptions,
  folder: string,
  { responseLength, rows, registries, reward: given, ...scores }: OpenRewardsOptions,
): Promise<RewardManager> {
  const { path, name, kwargs } = named;
  const loaded = path === null ? null : await loadExport(resolvePath(folder, path), name, "custom_reward_function");
  const reward = given ?? loaded;
  const asksRules = judges?.ruleWeight !== 0;
  if (!reward && asksRules) for (const row of rows) checkRowHasReward(row, { ...scores, ...registries });
  const options: RewardManagerOptions = {
    reward: reward as RewardFunction | BatchRewardFunction | null,
    rewards: registries.rewards,
    rewardName: path === null ? undefined : `${name} of ${basename(path)}`,
    kwargs,
    timeoutS,
    responseLength,
    overlongBuffer: overlong,
  };
  return makeRewardManager(manager, options, registries.rewardManagers);
}

/**
 * Combines the rules with reward models; null without reward models.
 * @throws ConfigError when a model's entry is wrong; EngineError when it cannot be loaded.
 */
export async function openJudgedRewards(
  { judges, timeoutS }: RewardOptions,
  folder: string,
  rules: RewardManager,
  device?: JudgeDevice,
): Promise<JudgedRewards | null> {
  if (!judges) return null;
  const models = await openRewardModels(judges.models, { folder, timeoutS, ...device });
  return new JudgedRewards({ rules, ruleWeight: judges.ruleWeight, models });
}

/** Makes the function that places rewards on tokens: weights, strategy, bonuses, penalties. */
export function makeRewardAggregator(options: RewardAggregation): RewardAggregator {
  return (earned) => aggregateReward(earned, options);
}
