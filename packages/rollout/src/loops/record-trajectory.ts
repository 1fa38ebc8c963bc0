import { hasFailed, type RequestState, type Trajectory, type TurnRecord } from "@cria/core";
import type { DatasetRow } from "../data/dataset-row.js";
import type { CompleteOutput } from "./complete-output.js";
import type { StateLog } from "./state-log.js";

/** A conversation that has ended and was not judged yet. */
export interface UnjudgedTrajectory extends Omit<Trajectory, "reward" | "rewards"> {
  /** Sum over the tools of calcReward; null when no tool has one, or one failed. */
  toolScore: number | null;
  /** The interaction's calculateScore; null when there was no interaction, or it failed. */
  interactionScore: number | null;
  /** Why one of them failed. */
  scoreError?: string;
}

/** A loop's output as the record of its rollout; token indices then count from the start of the prompt. */
export function recordTrajectory(
  row: DatasetRow,
  sampleIndex: number,
  output: CompleteOutput,
  request: StateLog<RequestState>,
): UnjudgedTrajectory {
  const promptLength = output.promptIds.length;
  const total = promptLength + output.responseIds.length;
  const ended = !hasFailed(output);
  request.enter(ended ? "completed" : "failed");
  // Where nothing is trained on, no step can have earned anything.
  const counts = ended && output.responseMask.includes(1);
  const place = <T extends { tokenIndex: number }>(entries: readonly T[]): T[] =>
    counts ? entries.map((entry) => ({ ...entry, tokenIndex: promptLength + entry.tokenIndex })) : [];
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
    turnScores: place(output.turnScores),
    toolRewards: place(output.toolRewards),
    metrics: output.error === undefined ? output.metrics : { ...output.metrics, failed: 1 },
    extraFields: output.extraFields,
    toolScore: output.toolScore,
    interactionScore: output.interactionScore,
    ...(output.scoreError === undefined ? {} : { scoreError: output.scoreError }),
    timeline: {
      loop: output.transitions,
      request: request.transitions,
      turns: output.turns.map((turn) => shiftTurn(turn, promptLength)),
    },
    ...(output.error === undefined ? {} : { error: output.error }),
  };
}

function shiftTurn({ toolCalls, ...turn }: TurnRecord, by: number): TurnRecord {
  const shift = <T extends { start: number; end: number }>(span: T): T => ({
    ...span,
    start: span.start + by,
    end: span.end + by,
  });
  return toolCalls ? { ...shift(turn), toolCalls: shift(toolCalls) } : shift(turn);
}
