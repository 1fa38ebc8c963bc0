import type { Registry, ScorePart } from "@cria/core";
import type { OverlongBuffer } from "./overlong-buffer.js";
import type { BatchRewardFunction, RewardFunction, RewardInfo } from "./reward-function.js";

/** Request to judge one finished trajectory. */
export interface RewardRequest {
  dataSource: string;
  solutionText: string;
  groundTruth: unknown;
  extraInfo: RewardInfo;
  /** Number of tokens after the prompt. */
  responseLength: number;
  /** The agent loop's own score; null or left out: none. */
  loopScore?: number | null;
  /** Error of a tool or interaction that should have scored the conversation. */
  scoreError?: string;
  /** Identifies the group: trajectories of one prompt share it. */
  uid: string;
  /** Position among the trajectories of its step. */
  order: number;
  /** Row and sample, for error messages. */
  place: string;
}

/**
 * A score, or the error of a judge that failed or timed out: that says nothing about the policy, and the
 * conversation counts as failed. `extra` holds the judge's other data: ragged, free-form. `parts` attribute the
 * score; default: all of it to the reward manager.
 */
export type Judgement =
  | { score: number; extra: Record<string, unknown>; parts?: readonly ScorePart[] }
  | { error: string; extra: Record<string, unknown> };

/** Turns finished trajectories into scores. */
export interface RewardManager {
  /**
   * "sample": judges each trajectory when its conversation ends. "batch": judges all of a step after the last has
   * ended.
   */
  readonly granularity: "sample" | "batch";
  /**
   * Returns one judgement per request. An exception becomes an `error` for all of them, except errors of config,
   * data and engine, which end the run.
   */
  judge(requests: readonly RewardRequest[], signal?: AbortSignal): Promise<Judgement[]>;
}

export interface RewardManagerOptions {
  /**
   * The user's function; null (default): the function of `data_source`, else calculateScore, else the sum of
   * calcReward.
   */
  reward?: RewardFunction | BatchRewardFunction | null;
  /** The functions by `data_source`; default: built-in and registered ones. */
  rewards?: Registry<RewardFunction>;
  /** Name of that function where scores are shown; default "the reward function". */
  rewardName?: string;
  /** Last argument of the reward function. */
  kwargs?: Record<string, unknown>;
  /** Timeout of each call of the reward function in seconds; null: no limit. */
  timeoutS?: number | null;
  /** Maximum number of tokens after the prompt; the overlong buffer ends there. */
  responseLength?: number;
  overlongBuffer?: OverlongBuffer | null;
}
