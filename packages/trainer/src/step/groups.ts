import type { AdvantageEstimator } from "@cria/algorithms";
import { hasFailed, type Trajectory } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import { type Batch, makeBatch } from "../policy/batch.js";
import { type Learnable, leaveOutFailures } from "./leave-out-failures.js";

/** Advantages of the trajectories that can be learned from. */
export interface Advantages {
  /** Indices of those trajectories among the groups' trajectories. */
  indices: readonly number[];
  /** Of each of `indices`, as long as the trajectory's tokens; 0 where nothing was sampled. */
  advantages: readonly Float32Array[];
  metrics: Record<string, number>;
}

export interface GroupsParts {
  rows: readonly DatasetRow[];
  /** n for each of `rows`, in the order of the rows; failed ones are included. */
  trajectories: readonly Trajectory[];
  /** At which they were sampled. */
  temperature: number;
  /** The longest response allowed, in tokens. */
  responseLength: number;
}

/** The rollouts of some rows: several of each. */
export class Groups implements Iterable<readonly Trajectory[]> {
  readonly rows: readonly DatasetRow[];
  readonly trajectories: readonly Trajectory[];
  readonly temperature: number;
  readonly responseLength: number;

  constructor({ rows, trajectories, temperature, responseLength }: GroupsParts) {
    this.rows = rows;
    this.trajectories = trajectories;
    this.temperature = temperature;
    this.responseLength = responseLength;
  }

  /** Mean reward of the conversations that did not fail; null when all did. */
  get reward(): number | null {
    return average(this.trajectories.filter((t) => !hasFailed(t)).map((t) => t.reward));
  }

  /** Mean score of the conversations that did not fail, without step rewards and shaping; null when none has one. */
  get success(): number | null {
    return average(this.trajectories.flatMap(({ rewards }) => rewards.score ?? []));
  }

  /** Group by group, in the order of the rows. */
  *[Symbol.iterator](): Iterator<readonly Trajectory[]> {
    for (const { uid } of this.rows) yield this.trajectories.filter((t) => t.uid === uid);
  }

  /** Leaves out failed trajectories, and groups that failures left too small for the estimator. */
  leaveOutFailures(estimator: AdvantageEstimator): Learnable {
    return leaveOutFailures(this.trajectories, estimator);
  }

  /** What `policy.train` takes. @param advantages of these groups. */
  toBatch({ indices, advantages }: Advantages): Batch {
    const { temperature, responseLength } = this;
    const trajectories = indices.map((i) => this.trajectories[i]!);
    return makeBatch(trajectories, { advantages, temperature, responseLength });
  }
}

function average(values: readonly number[]): number | null {
  return values.length > 0 ? values.reduce((a, b) => a + b, 0) / values.length : null;
}
