import { ConfigError } from "@cria/core";
import { BatchRewardManager } from "./batch-reward-manager.js";
import { DapoRewardManager } from "./dapo-reward-manager.js";
import { NaiveRewardManager } from "./naive-reward-manager.js";
import type { OverlongBuffer } from "./overlong-buffer.js";
import type { BatchRewardFunction, RewardFunction } from "./reward-function.js";

/** What there is to judge: one finished trajectory. */
export interface RewardRequest {
  dataSource: string;
  solutionText: string;
  groundTruth: unknown;
  extraInfo: Record<string, unknown>;
  /** Tokens after the prompt. */
  responseLength: number;
  /** Of the interaction's calculateScore; null when there was none. */
  interactionScore: number | null;
  /** Sum over tools of calcReward; null when there was no tool. */
  toolScore: number | null;
  /** Place among the trajectories of its step. */
  order: number;
  /** Row and sample, for error messages. */
  place: string;
}

export interface Judgement {
  score: number;
  /** What the reward function gave besides the score: ragged, free-form. */
  extra: Record<string, unknown>;
}

/** Turns finished trajectories into scores. */
export interface RewardManager {
  /** "sample": each is judged as soon as its conversation ends. "batch": all of a step, after the last one ended. */
  readonly granularity: "sample" | "batch";
  /** One judgement for each request. @throws DataError when a reward function fails or gives no number. */
  judge(requests: readonly RewardRequest[], signal?: AbortSignal): Promise<Judgement[]>;
}

export interface RewardManagerOptions {
  /** A function of the user's; null (default): by `data_source`, else calculateScore, else the sum of calcReward. */
  reward?: RewardFunction | BatchRewardFunction | null;
  /** Last argument of the reward function. */
  kwargs?: Record<string, unknown>;
  /** Seconds for each call of the reward function. A call that takes longer scores 0, with the extra key `reward_timeout`. */
  timeoutS?: number | null;
  /** Most tokens after the prompt; the overlong buffer ends there. */
  responseLength?: number;
  overlongBuffer?: OverlongBuffer | null;
}

export type RewardManagerFactory = (options: RewardManagerOptions) => RewardManager;

const factories = new Map<string, RewardManagerFactory>([
  ["naive", (options) => new NaiveRewardManager(options)],
  ["dapo", (options) => new DapoRewardManager(options)],
  ["batch", (options) => new BatchRewardManager(options)],
]);

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
