import type { Registry, ScorePart } from "@cria/core";
import type { OverlongBuffer } from "./overlong-buffer.js";
import type { BatchRewardFunction, RewardFunction, RewardInfo } from "./reward-function.js";

/** What there is to judge: one finished trajectory. */
export interface RewardRequest {
  dataSource: string;
  solutionText: string;
  groundTruth: unknown;
  extraInfo: RewardInfo;
  /** Tokens after the prompt. */
  responseLength: number;
  /** The agent loop's own judgement; null or left out: it has none. */
  loopScore?: number | null;
  /** Why a tool or the interaction that should have scored the conversation did not. */
  scoreError?: string;
  /** Group: trajectories of one prompt share it. */
  uid: string;
  /** Place among the trajectories of its step. */
  order: number;
  /** Row and sample, for error messages. */
  place: string;
}

/**
 * A score, or why there is none: a judge that broke or took too long says nothing about the policy, and its conversation
 * counts as failed. `extra` is what the judge gave besides: ragged, free-form. `parts` say who gave what of the score;
 * default: the reward manager gave all of it.
 */
export type Judgement =
  | { score: number; extra: Record<string, unknown>; parts?: readonly ScorePart[] }
  | { error: string; extra: Record<string, unknown> };

/** Turns finished trajectories into scores. */
export interface RewardManager {
  /** "sample": each is judged as soon as its conversation ends. "batch": all of a step, after the last one ended. */
  readonly granularity: "sample" | "batch";
  /**
   * One judgement for each request. What it throws is a judgement with an `error` for all of them, unless it is an error of
   * the config, the data or the engine: that ends the run.
   */
  judge(requests: readonly RewardRequest[], signal?: AbortSignal): Promise<Judgement[]>;
}

export interface RewardManagerOptions {
  /** A function of the user's; null (default): by `data_source`, else calculateScore, else the sum of calcReward. */
  reward?: RewardFunction | BatchRewardFunction | null;
  /** The functions by `data_source`; default: built-in and registered ones. */
  rewards?: Registry<RewardFunction>;
  /** What to call that function where scores are shown; default "the reward function". */
  rewardName?: string;
  /** Last argument of the reward function. */
  kwargs?: Record<string, unknown>;
  /** Seconds for each call of the reward function; what takes longer has not judged. Null: no limit. */
  timeoutS?: number | null;
  /** Most tokens after the prompt; the overlong buffer ends there. */
  responseLength?: number;
  overlongBuffer?: OverlongBuffer | null;
}
