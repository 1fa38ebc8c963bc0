import { ConfigError, type RequestState, type Trajectory } from "@cria/core";
import type { DatasetRow } from "../dataset-row.js";
import type { RewardFunction, RewardResult } from "../reward.js";
import type { AgentLoopOutput } from "./agent-loop.js";
import type { StateLog } from "./state-log.js";

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

/** A loop's output as the record of its rollout, judged. Nothing is judged that was aborted or failed. */
export async function finishTrajectory(
  row: DatasetRow,
  sampleIndex: number,
  output: AgentLoopOutput,
  request: StateLog<RequestState>,
  options: FinishOptions,
): Promise<Trajectory> {
  const promptLength = output.promptIds.length;
  const total = promptLength + output.responseIds.length;
  const ended = output.error === undefined && output.finishReason !== "aborted";
  const judged: RewardResult = ended ? await judge(row, output, options.reward) : 0;
  request.enter(ended ? "completed" : "failed");
  const { score, ...extra } = typeof judged === "number" ? { score: judged } : judged;
  const place = <T extends { tokenIndex: number }>(entry: T): T => ({
    ...entry,
    tokenIndex: promptLength + entry.tokenIndex,
  });
  const toolRewards = output.toolRewards.map(place);
  const turnScores = output.turnScores.map(place);
  const sum = (entries: readonly { value: number }[]) => entries.reduce((acc, entry) => acc + entry.value, 0);
  // A trajectory without a sampled token is kept, worth nothing.
  const counts = ended && output.responseMask.includes(1);
  const { weights } = options;
  const padded = <T extends Int32Array | Uint8Array | Float32Array>(target: T, response: ArrayLike<number>): T => {
    target.set(response, promptLength);
    return target;
  };
  const tokenIds = padded(new Int32Array(total), output.responseIds);
  tokenIds.set(output.promptIds);
  return {
    rowIndex: row.index,
    uid: row.uid,
    sampleIndex,
    dataSource: row.dataSource,
    tokenIds,
    promptLength,
    responseMask: padded(new Uint8Array(total), output.responseMask),
    rolloutLogprobs: padded(new Float32Array(total), output.responseLogprobs),
    messages: output.messages,
    finishReason: output.finishReason,
    numTurns: output.numTurns,
    turnScores: counts ? turnScores : [],
    toolRewards: counts ? toolRewards : [],
    reward: counts
      ? weights.trajectory * score + weights.tool * sum(toolRewards) + (weights.interaction ?? 1) * sum(turnScores)
      : 0,
    metrics: output.error === undefined ? output.metrics : { ...output.metrics, failed: 1 },
    extraFields: {
      ...output.extraFields,
      ...extra,
      score,
      toolScore: output.toolScore,
      interactionScore: output.interactionScore ?? null,
    },
    timeline: {
      loop: output.transitions ?? [],
      request: request.transitions,
      turns: (output.turns ?? []).map((turn) => ({
        ...turn,
        start: promptLength + turn.start,
        end: promptLength + turn.end,
        ...(turn.toolCalls
          ? {
              toolCalls: {
                ...turn.toolCalls,
                start: promptLength + turn.toolCalls.start,
                end: promptLength + turn.toolCalls.end,
              },
            }
          : {}),
      })),
    },
    ...(output.error === undefined ? {} : { error: output.error }),
  };
}

/** The reward function's verdict; without one the interaction's, else the tools'. @throws ConfigError when none has any. */
async function judge(row: DatasetRow, output: AgentLoopOutput, reward: RewardFunction | null): Promise<RewardResult> {
  const own = output.interactionScore ?? output.toolScore;
  const solution = output.messages
    .slice(row.prompt.length)
    .filter((message) => message.role === "assistant")
    .map((message) => message.content)
    .join("\n");
  try {
    if (reward) {
      return await reward(row.dataSource, solution, row.groundTruth, {
        ...row.extraInfo,
        messages: output.messages,
        numTurns: output.numTurns,
        finishReason: output.finishReason,
        interactionScore: output.interactionScore ?? null,
        toolScore: output.toolScore,
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
