import { hasFailed } from "@cria/core";
import type { DumpLine, JudgedAgain } from "@cria/records";
import { averageExtras } from "@cria/rollout/internal";
import type { StepMetrics } from "../step-metrics.js";
import { makeValidationMetrics } from "../validation/validation-metrics.js";

/** A conversation whose judgement changed. */
export interface ChangedJudgement {
  /** `rollouts/<step>.jsonl` or `validation/<step>.jsonl`. */
  file: string;
  uid: string;
  sample: number;
  /** Scores; null: the conversation has none. */
  before: number | null;
  after: number | null;
  /** Why there is no score now. */
  error: string | null;
}

/** Means over conversations; null if none has a value. */
export interface Means {
  score: number | null;
  reward: number | null;
  /** Share of successes among the judged. */
  success: number | null;
}

/** Counts for the conversations of one kind. */
export interface RescoreCounts {
  conversations: number;
  /** Conversations that had failed before they were judged; unchanged. */
  skipped: number;
  /** Conversations at which the new judge failed. */
  failed: number;
  /** Conversations with another score now. */
  changed: number;
  /** Conversations with another success now. */
  flipped: number;
  before: Means;
  after: Means;
}

type Judged = Pick<DumpLine, "score" | "reward" | "success">;

/** Result for a conversation without its texts: a run's conversations need not fit into memory together. */
export interface Outcome {
  /** null: the conversation was not judged. */
  judged: { before: Judged; after: Judged } | null;
  /** True if the new judge failed. */
  hasFailed: boolean;
}

export function describeOutcome({ line, trajectory }: JudgedAgain): Outcome {
  const pick = ({ score, reward, success }: Judged): Judged => ({ score, reward, success });
  if (trajectory === null) return { judged: null, hasFailed: false };
  return { judged: { before: pick(line.before!), after: pick(line) }, hasFailed: hasFailed(trajectory) };
}

export function count(outcomes: readonly Outcome[]): RescoreCounts {
  const judged = outcomes.flatMap((outcome) => outcome.judged ?? []);
  return {
    conversations: outcomes.length,
    skipped: outcomes.length - judged.length,
    failed: outcomes.filter((outcome) => outcome.hasFailed).length,
    changed: judged.filter(({ before, after }) => before.score !== after.score).length,
    flipped: judged.filter(({ before, after }) => before.success !== after.success).length,
    before: average(judged.map(({ before }) => before)),
    after: average(judged.map(({ after }) => after)),
  };
}

function average(lines: readonly Judged[]): Means {
  const mean = (key: keyof Judged) => {
    const values = lines.flatMap((line) => line[key] ?? []).map(Number);
    return values.length > 0 ? values.reduce((a, b) => a + b, 0) / values.length : null;
  };
  return { score: mean("score"), reward: mean("reward"), success: mean("success") };
}

/**
 * Conversations with the largest changes of score; a score that appeared or disappeared counts as the largest
 * change.
 */
export function findMostChanged(
  changed: readonly ChangedJudgement[],
  more: readonly ChangedJudgement[],
  most: number,
): ChangedJudgement[] {
  const size = ({ before, after }: ChangedJudgement) =>
    before === null || after === null ? Number.POSITIVE_INFINITY : Math.abs(after - before);
  const compare = (a: number, b: number) => (a === b ? 0 : b - a);
  return [...changed, ...more].sort((a, b) => compare(size(a), size(b))).slice(0, most);
}

export function listChanged(file: string, lines: readonly JudgedAgain[]): ChangedJudgement[] {
  return lines.flatMap(({ line, trajectory }) => {
    if (trajectory === null || line.score === line.before!.score) return [];
    const { uid, sample, score, error, before } = line;
    return [{ file, uid, sample, before: before!.score, after: score, error }];
  });
}

/** Metrics of a step's conversations under training's names, and the earlier values. */
export function measureDump(folder: "rollouts" | "validation", lines: readonly JudgedAgain[]): StepMetrics {
  const trajectories = lines.flatMap(({ trajectory }) => trajectory ?? []);
  if (folder === "validation") return makeValidationMetrics(trajectories);
  const kept = trajectories.filter((trajectory) => !hasFailed(trajectory));
  const metrics: StepMetrics = {};
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  if (kept.length > 0) {
    for (const part of ["score", "outcome", "length", "tools", "turns"] as const)
      metrics[`reward/${part}/mean`] = mean(kept.map(({ rewards }) => rewards[part]!));
    const rewards = kept.map(({ reward }) => reward);
    metrics["critic/score/mean"] = mean(rewards);
    metrics["critic/score/max"] = rewards.reduce((a, b) => Math.max(a, b));
    metrics["critic/score/min"] = rewards.reduce((a, b) => Math.min(a, b));
  }
  for (const [key, value] of Object.entries(averageExtras(kept))) metrics[`reward_extra/${key}/mean`] = value;
  const { conversations, skipped, failed, changed, before, after } = count(lines.map(describeOutcome));
  metrics["rollout/failed"] = skipped + failed;
  metrics["rollout/judge_failed"] = failed;
  metrics["rollout/kept"] = kept.length;
  metrics["rescore/changed_ratio"] = changed / Math.max(1, conversations);
  for (const [name, means] of [
    ["before", before],
    ["after", after],
  ] as const)
    for (const [key, value] of Object.entries(means))
      if (value !== null) metrics[`rescore/${key}_${name}/mean`] = value;
  return metrics;
}
