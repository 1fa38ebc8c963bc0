import type { TurnRecord } from "@cria/core";
import type { Settings } from "../config/import/settings.js";

/**
 * Determines the policy version that samples each step. It depends only on the step's number, never on the order in
 * which conversations finish.
 */
export interface Schedule {
  /**
   * Number of updates between the policy that samples a step and the one that learns from it, at least 0; 0: no lag.
   */
  lag: number;
  /** Number of steps of the training. */
  total: number;
}

/** Number of updates of the policy that samples a step: `step - 1 - lag`, at least 0. @param step from 1. */
export function versionOf(step: number, { lag }: Pick<Schedule, "lag">): number {
  return Math.max(0, step - 1 - lag);
}

/** Number of updates between the policy that samples a step and the one that learns from it. @param step from 1. */
export function stalenessOf(step: number, schedule: Pick<Schedule, "lag">): number {
  return step - 1 - versionOf(step, schedule);
}

/**
 * Steps whose conversations are running while `step` is learned from, including `step` itself. No step after the last
 * is started.
 */
export function listUnderWay(step: number, { lag, total }: Schedule): number[] {
  const last = Math.min(total, step + lag);
  return Array.from({ length: Math.max(0, last - step + 1) }, (_, i) => step + i);
}

/**
 * Versions that sample the running steps after `done` steps, earliest first. A checkpoint stores them in addition to
 * the policy.
 */
export function listVersions(done: number, schedule: Schedule): number[] {
  const under = listUnderWay(done + 1, { ...schedule, lag: schedule.lag - 1 });
  return [...new Set(under.map((step) => versionOf(step, schedule)))].filter((version) => version < done);
}

/**
 * Age of a step's conversations under verl's metric names: number of versions within a conversation, and number of
 * updates between the version that sampled its newest, or its oldest, turn and the policy that learns from it. And
 * whether a clock, or the schedule alone, decides which version samples.
 * @param conversations turns of each; those without a version were sampled by the schedule's.
 */
export function measureStaleness(
  step: number,
  schedule: Pick<Settings, "lag" | "partialRollout">,
  conversations: readonly (readonly Pick<TurnRecord, "policyVersion">[])[],
): Record<string, number> {
  if (schedule.lag === 0) return {};
  const scheduled = versionOf(step, schedule);
  const ages = conversations.map((turns) => {
    const sampled = turns.flatMap(({ policyVersion }) => (policyVersion === undefined ? [] : [policyVersion - 1]));
    const versions = sampled.length > 0 ? sampled : [scheduled];
    return {
      trajectory_spans: new Set(versions).size,
      trajectory_staleness: step - 1 - Math.max(...versions),
      trajectory_staleness_worst: step - 1 - Math.min(...versions),
    };
  });
  const metrics: Record<string, number> = {
    "training/off_policy/depends_on_clock": schedule.partialRollout === "carry_on" ? 0 : 1,
  };
  for (const name of ["trajectory_spans", "trajectory_staleness", "trajectory_staleness_worst"] as const) {
    const values = ages.map((age) => age[name]);
    if (values.length === 0) continue;
    metrics[`training/off_policy/${name}/mean`] = values.reduce((sum, value) => sum + value, 0) / values.length;
    metrics[`training/off_policy/${name}/min`] = Math.min(...values);
    metrics[`training/off_policy/${name}/max`] = Math.max(...values);
  }
  return metrics;
}
