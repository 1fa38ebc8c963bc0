import type { Trajectory } from "@cria/core";
import type { DatasetRow, RewardAggregator, RewardManager } from "@cria/rollout";
import { copyRow, finishTrajectory, makeRewardRequest, RewardQueue, takeTurn } from "@cria/rollout/internal";
import { describeJudgement, describeStepRewards } from "./describe-judgement.js";
import type { DumpLine } from "./dump-line.js";
import { isOfRow, listRecordedCalls, restoreRow, restoreTrajectory } from "./restore-trajectory.js";

export interface JudgeAgainOptions {
  manager: RewardManager;
  /** Places scores on tokens. */
  aggregate: RewardAggregator;
  /** Rows of the run by uid, for their `extra_info`; a row that does not match its line is ignored. */
  rows: ReadonlyMap<string, DatasetRow>;
  signal?: AbortSignal;
  /** Called after each judgement. */
  onJudged?: () => void;
}

export interface JudgedAgain {
  line: DumpLine;
  /** null: the conversation had failed before it was judged; `line` is unchanged. */
  trajectory: Trajectory | null;
  /** True if its row, and so its `extra_info`, was found. */
  hasRow: boolean;
}

/**
 * Judges the conversations of one dump with another reward. Scores, parts, token rewards and `extra` come from the
 * new judge; `before` keeps the earlier ones. The advantage is null, because nothing was trained on the new reward.
 * If the judge fails, the conversation counts as failed, as in training.
 * @param lines with their images in memory (`DumpImages.fill`).
 * @throws errors that end a training: an abort, and errors of config, data and engine.
 */
export async function judgeAgain(lines: readonly DumpLine[], options: JudgeAgainOptions): Promise<JudgedAgain[]> {
  const { manager, aggregate, signal, onJudged } = options;
  const restored = lines.map((line) => ({ line, ended: restoreTrajectory(line) }));
  const queue = new RewardQueue(manager, restored.filter(({ ended }) => ended !== null).length, signal);
  const judging: Promise<JudgedAgain>[] = [];
  for (const [order, { line, ended }] of restored.entries()) {
    await takeTurn();
    if (signal?.aborted) break;
    const known = options.rows.get(line.uid);
    const hasRow = known !== undefined && isOfRow(line, known);
    const judge = async (): Promise<JudgedAgain> => {
      if (ended === null) return { line, trajectory: null, hasRow };
      const row = hasRow ? copyRow(known) : restoreRow(line);
      const judgement = await queue.judge(makeRewardRequest(row, ended, order));
      const trajectory = finishTrajectory(ended, judgement, aggregate, () => listRecordedCalls(line));
      onJudged?.();
      return { line: describeAgain(line, trajectory), trajectory, hasRow };
    };
    judging.push(judge());
    // All are awaited below; until then a rejection must count as handled.
    judging.at(-1)!.catch(() => undefined);
  }
  signal?.throwIfAborted();
  return Promise.all(judging);
}

/** The line with the new judgement. */
function describeAgain(line: DumpLine, trajectory: Trajectory): DumpLine {
  const failed = trajectory.error !== undefined;
  const responseMask = [...trajectory.responseMask];
  const hasLogprobs = failed || line.metrics.reward_failed !== 1;
  return {
    ...line,
    ...describeJudgement(trajectory),
    advantage: null,
    ...(line.advantages ? { advantages: null } : {}),
    response_mask: responseMask,
    token_level_rewards: [...trajectory.rewards.tokenLevel],
    rollout_logprobs: failed ? responseMask.map(() => 0) : hasLogprobs ? line.rollout_logprobs : [],
    spans: line.spans.map((span) => ({ ...span, mask: responseMask[span.start] === 1 ? 1 : 0 })),
    turn_scores: describeStepRewards(trajectory.turnScores),
    tool_rewards: describeStepRewards(trajectory.toolRewards),
    metrics: trajectory.metrics,
    before: {
      reward: line.reward,
      score: line.score,
      success: line.success,
      parts: line.parts,
      extra: line.extra,
      error: line.error,
    },
  };
}
