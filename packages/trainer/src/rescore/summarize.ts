import { hasFailed } from "@cria/core";
import type { DumpLine, JudgedAgain } from "@cria/records";
import { averageExtras } from "@cria/rollout";
import type { StepMetrics } from "../step-metrics.js";
import { makeValidationMetrics } from "../validation/validation-metrics.js";

/** A conversation whose judgement changed. */
export interface ChangedJudgement {
  /** `rollouts/<step>.jsonl` or `validation/<step>.jsonl`. */
  file: string;
  uid: string;
  sample: number;
  /** Scores; null: the conversation had none. */
  before: number | null;
  after: number | null;
  /** Why there is none now. */
  error: string | null;
}

/** Means over conversations; null where none has a value. */
export interface Means {
  score: number | null;
  reward: number | null;
  /** Share of those that were judged. */
  success: number | null;
}

/** What became of the conversations of one kind. */
export interface RescoreCounts {
  conversations: number;
  /** That had failed before a judge saw them, and stay so. */
  skipped: number;
  /** That the new judge failed at. */
  failed: number;
  /** Whose score is another one now. */
  changed: number;
  /** Whose success is another one now. */
  flipped: number;
  before: Means;
  after: Means;
}

type Judged = Pick<DumpLine, "score" | "reward" | "success">;

/** What counts of a conversation: a run's conversations need not fit into memory together. */
export interface Outcome {
  /** null: no judge saw the conversation. */
  judged: { before: Judged; after: Judged } | null;
  /** Whether the new judge failed. */
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

/** Those whose score changed most, the largest change first: what has a score now and had none, or the other way round, comes first. */
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

/** Metrics of a step's conversations, by the names that a training gives them, and what they were before. */
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
