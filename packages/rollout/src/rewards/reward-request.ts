import type { Trajectory } from "@cria/core";
import type { DatasetRow } from "../dataset-row.js";
import type { UnjudgedTrajectory } from "../loops/record-trajectory.js";
import type { Judgement, RewardRequest } from "./reward-manager.js";

/** How a reward function gets to see a trajectory. */
export function makeRewardRequest(row: DatasetRow, trajectory: UnjudgedTrajectory, order: number): RewardRequest {
  const { messages, extraFields } = trajectory;
  const interactionScore = readScore(extraFields.interactionScore);
  const toolScore = readScore(extraFields.toolScore);
  const solutionText = messages
    .slice(row.prompt.length)
    .filter((message) => message.role === "assistant")
    .map((message) => message.content)
    .join("\n");
  return {
    dataSource: row.dataSource,
    solutionText,
    groundTruth: row.groundTruth,
    extraInfo: {
      ...row.extraInfo,
      ...(row.images ? { images: row.images } : {}),
      ...(row.videos ? { videos: row.videos } : {}),
      ...(extraFields.full_prompt === undefined ? {} : { full_prompt: extraFields.full_prompt }),
      messages,
      numTurns: trajectory.numTurns,
      finishReason: trajectory.finishReason,
      toolRewards: trajectory.toolRewards,
      turnScores: trajectory.turnScores,
      interactionScore,
      toolScore,
    },
    responseLength: trajectory.tokenIds.length - trajectory.promptLength,
    interactionScore,
    toolScore,
    place: `row ${row.index} (${row.place}, data_source "${row.dataSource}"), sample ${trajectory.sampleIndex}`,
    order,
  };
}

function readScore(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

export interface RewardWeights {
  trajectory: number;
  tool: number;
  interaction: number;
}

/**
 * The trajectory with its reward: trajectory · score + tool · Σ tool step rewards + interaction · Σ turn scores. One without
 * a sampled token is kept, worth nothing.
 */
export function finishReward(
  trajectory: UnjudgedTrajectory,
  { score, extra }: Judgement,
  weights: RewardWeights,
): Trajectory {
  const sum = (steps: readonly { value: number }[]) => steps.reduce((total, step) => total + step.value, 0);
  const reward =
    weights.trajectory * score +
    weights.tool * sum(trajectory.toolRewards) +
    weights.interaction * sum(trajectory.turnScores);
  return {
    ...trajectory,
    reward: trajectory.responseMask.includes(1) ? reward : 0,
    extraFields: { ...trajectory.extraFields, ...extra, score },
  };
}
