import { ConfigError, type Trajectory } from "@cria/core";
import type { DatasetRow } from "../dataset-row.js";
import type { RewardFunction, RewardResult } from "../reward.js";
import type { UnjudgedTrajectory } from "./record-trajectory.js";

export interface RewardWeights {
  trajectory: number;
  tool: number;
  /** Default 1. */
  interaction?: number;
}

export interface FinishOptions {
  /** Null: interactions and tools judge by themselves. */
  reward: RewardFunction | null;
  weights: RewardWeights;
}

/** The trajectory with its reward. What was aborted, failed or has no sampled token is not judged, and worth nothing. */
export async function finishTrajectory(
  row: DatasetRow,
  trajectory: UnjudgedTrajectory,
  { reward, weights }: FinishOptions,
): Promise<Trajectory> {
  const { toolRewards, turnScores, extraFields } = trajectory;
  if (trajectory.error !== undefined || trajectory.finishReason === "aborted")
    return { ...trajectory, reward: 0, extraFields: { ...extraFields, score: 0 } };
  const judged = await judge(row, trajectory, reward);
  const { score, ...extra } = typeof judged === "number" ? { score: judged } : judged;
  const sum = (entries: readonly { value: number }[]) => entries.reduce((total, entry) => total + entry.value, 0);
  const total =
    weights.trajectory * score + weights.tool * sum(toolRewards) + (weights.interaction ?? 1) * sum(turnScores);
  return {
    ...trajectory,
    reward: trajectory.responseMask.includes(1) ? total : 0,
    extraFields: { ...extraFields, ...extra, score },
  };
}

/** The reward function's verdict; without one the interaction's, else the tools'. @throws ConfigError when none has any. */
async function judge(
  row: DatasetRow,
  { messages, numTurns, finishReason, extraFields }: UnjudgedTrajectory,
  reward: RewardFunction | null,
): Promise<RewardResult> {
  const { interactionScore, toolScore } = extraFields as Record<string, number | null>;
  const own = interactionScore ?? toolScore ?? null;
  const solution = messages
    .slice(row.prompt.length)
    .filter((message) => message.role === "assistant")
    .map((message) => message.content)
    .join("\n");
  try {
    if (reward) {
      return await reward(row.dataSource, solution, row.groundTruth, {
        ...row.extraInfo,
        messages,
        numTurns,
        finishReason,
        interactionScore,
        toolScore,
      });
    }
  } catch (error) {
    const unknownSource = error instanceof ConfigError && error.code === "config/unknown-data-source";
    if (!unknownSource || own === null) throw error;
  }
  if (own !== null) return own;
  throw new ConfigError("has nobody to judge it", {
    code: "config/unknown-data-source",
    subject: `data_source "${row.dataSource}" (row ${row.index})`,
    expected: "a reward function, an interaction, or a tool with calcReward",
    remedy: "set custom_reward_function.path",
  });
}
