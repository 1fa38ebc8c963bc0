/** Which policy samples which step: a function of the step alone, never of what was finished first. */
export interface Schedule {
  /** Updates between the policy that samples a step and the one that learns from it, at least 0; 0: none. */
  lag: number;
  /** Steps of the training. */
  total: number;
}

/** Updates that the policy has seen which samples a step: `step - 1 - lag`, or 0 for the first ones. @param step from 1. */
export function versionOf(step: number, { lag }: Pick<Schedule, "lag">): number {
  return Math.max(0, step - 1 - lag);
}

/** Updates between the policy that samples a step and the one that learns from it. @param step from 1. */
export function stalenessOf(step: number, schedule: Pick<Schedule, "lag">): number {
  return step - 1 - versionOf(step, schedule);
}

/** Steps whose conversations go on while `step` is learned from, its own first. Nothing is begun behind the end. */
export function listUnderWay(step: number, { lag, total }: Schedule): number[] {
  const last = Math.min(total, step + lag);
  return Array.from({ length: Math.max(0, last - step + 1) }, (_, i) => step + i);
}

/** Versions that sample the steps under way once `done` steps are: what a checkpoint holds beside the policy. Earliest first. */
export function listVersions(done: number, schedule: Schedule): number[] {
  const under = listUnderWay(done + 1, { ...schedule, lag: schedule.lag - 1 });
  return [...new Set(under.map((step) => versionOf(step, schedule)))].filter((version) => version < done);
}

/**
 * How old what a step learns from is, by verl's names: versions within a conversation (here one), and updates between the version
 * that sampled it and the policy that learns from it. All conversations of a step are of one version.
 */
export function measureStaleness(step: number, schedule: Pick<Schedule, "lag">): Record<string, number> {
  if (schedule.lag === 0) return {};
  const staleness = stalenessOf(step, schedule);
  const values = { trajectory_spans: 1, trajectory_staleness: staleness, trajectory_staleness_worst: staleness };
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      ["mean", "min", "max"].map((kind) => [`training/off_policy/${name}/${kind}`, value]),
    ),
  );
}
