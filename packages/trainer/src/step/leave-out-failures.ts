import type { AdvantageEstimator } from "@cria/algorithms";
import { hasFailed, type Trajectory } from "@cria/core";

/** Counts over all rollouts of a step, also over groups that were filtered out. */
export interface FailureCounts {
  conversations: number;
  /** Conversations that failed or could not be judged, after refills. */
  failed: number;
  /** Those of them whose judge failed. */
  judgeFailed: number;
  /** Times that a conversation was sampled again. */
  refilled: number;
  /** Groups that failures left with too little to learn from. */
  droppedGroups: number;
}

export interface Learnable {
  /** Indices of the trajectories that a step may learn from, in order. */
  indices: number[];
  failures: FailureCounts;
}

/**
 * Leaves out failed trajectories. If the estimator compares the samples of a group, it also leaves out groups with
 * fewer than two samples left; a group that had one sample from the start stays.
 */
export function leaveOutFailures(trajectories: readonly Trajectory[], estimator: AdvantageEstimator): Learnable {
  const groups = new Map<string, { size: number; left: number }>();
  for (const trajectory of trajectories) {
    const group = groups.get(trajectory.uid) ?? { size: 0, left: 0 };
    group.size++;
    if (!hasFailed(trajectory)) group.left++;
    groups.set(trajectory.uid, group);
  }
  const isDropped = (uid: string) => {
    const { size, left } = groups.get(uid)!;
    return estimator.comparesGroup === true && size > 1 && left < 2;
  };
  const count = (pick: (t: Trajectory) => number) => trajectories.reduce((sum, t) => sum + pick(t), 0);
  return {
    indices: [...trajectories.keys()].filter((i) => !hasFailed(trajectories[i]!) && !isDropped(trajectories[i]!.uid)),
    failures: {
      conversations: trajectories.length,
      failed: count((t) => (hasFailed(t) ? 1 : 0)),
      judgeFailed: count((t) => t.metrics.reward_failed ?? 0),
      refilled: count((t) => t.metrics.refilled ?? 0),
      droppedGroups: [...groups.keys()].filter(isDropped).length,
    },
  };
}

/** Leaves out the groups whose greedy rollout failed as well: they have no baseline. @param baselines by uid; null: not needed. */
export function leaveOutGroupsWithoutBaseline(
  { indices, failures }: Learnable,
  trajectories: readonly Trajectory[],
  baselines: ReadonlyMap<string, number> | null,
): Learnable {
  if (baselines === null) return { indices, failures };
  const missing = new Set(indices.map((i) => trajectories[i]!.uid).filter((uid) => !baselines.has(uid)));
  return {
    indices: indices.filter((i) => !missing.has(trajectories[i]!.uid)),
    failures: { ...failures, droppedGroups: failures.droppedGroups + missing.size },
  };
}

export function addFailures(a: FailureCounts, b: FailureCounts): FailureCounts {
  const names = Object.keys(a) as (keyof FailureCounts)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as unknown as FailureCounts;
}

/** @param kept trajectories that the step learns from. */
export function makeFailureMetrics(failures: FailureCounts, kept: number): Record<string, number> {
  return {
    "rollout/failed": failures.failed,
    "rollout/failed_ratio": failures.failed / Math.max(1, failures.conversations),
    "rollout/judge_failed": failures.judgeFailed,
    "rollout/refilled": failures.refilled,
    "rollout/dropped_groups": failures.droppedGroups,
    "rollout/kept": kept,
  };
}
