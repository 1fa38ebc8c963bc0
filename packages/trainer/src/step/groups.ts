import type { AdvantageEstimator, EstimatorState } from "@cria/algorithms";
import { DataError, hasFailed, type Trajectory } from "@cria/core";
import { checkOptions, optionChecks } from "@cria/core/internal";
import type { DatasetRow } from "@cria/rollout";
import { type Batch, makeBatch } from "../policy/batch.js";
import type { LossWeights } from "../policy/mix-mini-batch.js";
import { ofRole } from "../policy/of-role.js";
import { isTeachersAlone } from "./guidance.js";

/** Advantages of the trajectories that a step can learn from. */
export interface Advantages {
  /** Indices of these trajectories in `groups.trajectories`. */
  indices: readonly number[];
  /** Advantages of each of `indices`, as long as the trajectory's tokens; 0 at tokens that were not sampled. */
  advantages: readonly Float32Array[];
  /** Further metrics of the estimator, by the field's names. */
  metrics: Record<string, number>;
  /** Numbers that the estimator keeps for the next step (rae): pass them on as `state`. Left out: none. */
  state?: EstimatorState;
}

export interface GroupsParts<Row extends DatasetRow = DatasetRow> {
  rows: readonly Row[];
  /** All trajectories of each of `rows`, in the order of the rows; failed ones are included. */
  trajectories: readonly Trajectory[];
  /** Temperature at which they were sampled. */
  temperature: number;
  /** Maximum length of a response in tokens. */
  responseLength: number;
}

/** Rollouts of rows, several per row. `rollOut` creates them. */
export class Groups<Row extends DatasetRow = DatasetRow> implements Iterable<readonly Trajectory[]> {
  readonly rows: readonly Row[];
  readonly trajectories: readonly Trajectory[];
  readonly temperature: number;
  readonly responseLength: number;

  constructor({ rows, trajectories, temperature, responseLength }: GroupsParts<Row>) {
    this.rows = rows;
    this.trajectories = trajectories;
    this.temperature = temperature;
    this.responseLength = responseLength;
  }

  /** Mean reward of the conversations that did not fail; null if all failed. */
  get reward(): number | null {
    return average(this.trajectories.filter((t) => !hasFailed(t)).map((t) => t.reward));
  }

  /** Mean score of the judged conversations, without step rewards and shaping; null if none was judged. */
  get success(): number | null {
    return average(this.trajectories.flatMap(({ rewards }) => rewards.score ?? []));
  }

  /** Iterates over the groups in the order of the rows. */
  *[Symbol.iterator](): Iterator<readonly Trajectory[]> {
    for (const { uid } of this.rows) yield this.trajectories.filter((t) => t.uid === uid);
  }

  /** Leaves out failed trajectories, and groups that failures left too small for the estimator. */
  leaveOutFailures(estimator: AdvantageEstimator): Learnable {
    return leaveOutFailures(this.trajectories, estimator);
  }

  /**
   * Makes the batch for `policy.train` of the trajectories that have advantages.
   * @param options.lossWeights weights of a row's trajectories in the terms of the loss, by their names; default: all
   * are 1. `role`: only the tokens of this role are in the loss, for `policy.roles`; default: those of all roles.
   * @throws DataError when the advantages do not belong to these groups; ConfigError for an unknown or wrong option.
   */
  toBatch(
    { indices, advantages }: Advantages,
    options: { lossWeights?: (row: Row) => LossWeights | undefined; role?: string } = {},
  ): Batch {
    checkOptions("groups.toBatch", options, { lossWeights: optionChecks.function, role: optionChecks.text });
    const { lossWeights, role } = options;
    const { temperature, responseLength } = this;
    const trajectories = indices.map((i) => this.trajectories[i]!);
    const refuse = (summary: string, expected: string, received: string) =>
      new DataError(summary, {
        code: "data/other-advantages",
        subject: "groups.toBatch: advantages",
        expected,
        received,
      });
    if (advantages.length !== indices.length)
      throw refuse("are not of their indices", `${indices.length} arrays`, `${advantages.length}`);
    advantages.forEach((values, k) => {
      const index = indices[k]!;
      const tokens = trajectories[k]?.tokenIds.length;
      if (tokens === undefined)
        throw refuse("are not of these groups", `indices below ${this.trajectories.length}`, String(index));
      if (values.length !== tokens)
        throw refuse("are not of these groups", `${tokens} values for trajectory ${index}`, `${values.length}`);
    });
    const rows = new Map(this.rows.map((row) => [row.uid, row]));
    const shown = trajectories.map((trajectory) => ofRole(trajectory, role ?? null));
    return makeBatch(shown, {
      advantages,
      temperature,
      responseLength,
      ...(lossWeights ? { lossWeights: (index) => lossWeights(rows.get(trajectories[index]!.uid)!) } : {}),
    });
  }
}

function average(values: readonly number[]): number | null {
  return values.length > 0 ? values.reduce((a, b) => a + b, 0) / values.length : null;
}

/** Counts over all rollouts of a step, including groups that were filtered out. */
export interface FailureCounts {
  conversations: number;
  /** Conversations that still failed, or could not be judged, after refills. */
  failed: number;
  /** Failed conversations whose judge failed. */
  judgeFailed: number;
  /** Conversations in which an agent did not call the policy. */
  silent: number;
  /** Number of times that a conversation was sampled again. */
  refilled: number;
  /** Groups with too few samples left to learn from. */
  droppedGroups: number;
}

export interface Learnable {
  /** Indices of the trajectories that a step may learn from, in order. */
  indices: number[];
  failures: FailureCounts;
}

/**
 * True if there are tokens to learn from. If the agent did not call the policy, or a teacher sampled all turns, the
 * score says nothing about the policy.
 */
function isTold(trajectory: Trajectory): boolean {
  if (hasFailed(trajectory) || trajectory.tokenIds.length === 0) return false;
  return !isTeachersAlone(trajectory.timeline?.turns ?? []);
}

/**
 * Leaves out failed trajectories, those of agents that did not call the policy, and those that a teacher held alone. If the estimator compares the
 * samples of a group, it also leaves out groups with fewer than two samples left; a group that had one sample from the
 * start is kept.
 */
export function leaveOutFailures(trajectories: readonly Trajectory[], estimator: AdvantageEstimator): Learnable {
  const groups = new Map<string, { size: number; left: number }>();
  for (const trajectory of trajectories) {
    const group = groups.get(trajectory.uid) ?? { size: 0, left: 0 };
    group.size++;
    if (isTold(trajectory)) group.left++;
    groups.set(trajectory.uid, group);
  }
  const isDropped = (uid: string) => {
    const { size, left } = groups.get(uid)!;
    return estimator.comparesGroup === true && size > 1 && left < 2;
  };
  const count = (pick: (t: Trajectory) => number) => trajectories.reduce((sum, t) => sum + pick(t), 0);
  return {
    indices: [...trajectories.keys()].filter((i) => isTold(trajectories[i]!) && !isDropped(trajectories[i]!.uid)),
    failures: {
      conversations: trajectories.length,
      failed: count((t) => (hasFailed(t) ? 1 : 0)),
      judgeFailed: count((t) => t.metrics.reward_failed ?? 0),
      silent: count((t) => (t.tokenIds.length === 0 ? 1 : 0)),
      refilled: count((t) => t.metrics.refilled ?? 0),
      droppedGroups: [...groups.keys()].filter(isDropped).length,
    },
  };
}

/**
 * Also leaves out groups without a baseline, whose greedy rollout failed.
 * @param baselines rewards of greedy rollouts by uid; null: not needed.
 */
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

/** @param kept number of trajectories that the step learns from. */
export function makeFailureMetrics(failures: FailureCounts, kept: number): Record<string, number> {
  return {
    "rollout/failed": failures.failed,
    "rollout/failed_ratio": failures.failed / Math.max(1, failures.conversations),
    "rollout/judge_failed": failures.judgeFailed,
    "rollout/silent": failures.silent,
    "rollout/refilled": failures.refilled,
    "rollout/dropped_groups": failures.droppedGroups,
    "rollout/kept": kept,
  };
}
