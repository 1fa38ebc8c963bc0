import type { AdvantageEstimator } from "@cria/algorithms";
import { DataError, hasFailed, type Trajectory } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import { type Batch, makeBatch } from "../policy/batch.js";
import { type Learnable, leaveOutFailures } from "./leave-out-failures.js";

/** Advantages of what can be learned from some groups. */
export interface Advantages {
  /** Of the groups' trajectories: those that the advantages are of. */
  indices: readonly number[];
  /** Of each of `indices`, as long as the trajectory's tokens; 0 where nothing was sampled. */
  advantages: readonly Float32Array[];
  /** What the estimator tells beside, by names of the field. */
  metrics: Record<string, number>;
}

export interface GroupsParts {
  rows: readonly DatasetRow[];
  /** n for each of `rows`, in their order: those that failed too. */
  trajectories: readonly Trajectory[];
  /** At which they were sampled. */
  temperature: number;
  /** The longest response allowed, in tokens. */
  responseLength: number;
}

/** The rollouts of some rows: several of each. `rollOut` makes them. */
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

  /** Mean score of the conversations that were judged, without step rewards and shaping; null when none was. */
  get success(): number | null {
    return average(this.trajectories.flatMap(({ rewards }) => rewards.score ?? []));
  }

  /** Group by group, in the order of the rows. */
  *[Symbol.iterator](): Iterator<readonly Trajectory[]> {
    for (const { uid } of this.rows) yield this.trajectories.filter((t) => t.uid === uid);
  }

  /** What an estimator may learn from: nothing that failed, and no group that failures left alone. */
  leaveOutFailures(estimator: AdvantageEstimator): Learnable {
    return leaveOutFailures(this.trajectories, estimator);
  }

  /**
   * What `policy.train` takes: the trajectories that there are advantages of.
   * @throws DataError when the advantages are not of these groups.
   */
  toBatch({ indices, advantages }: Advantages): Batch {
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
    return makeBatch(trajectories, { advantages, temperature, responseLength });
  }
}

function average(values: readonly number[]): number | null {
  return values.length > 0 ? values.reduce((a, b) => a + b, 0) / values.length : null;
}
