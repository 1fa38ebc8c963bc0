import { hasFailed, hashSeed, type Trajectory } from "@cria/core";
import { shuffleIndices } from "@cria/core/internal";
import type { ReplayOptions } from "../config/options/algorithm.js";
import { type KeptTrajectory, keepTrajectory } from "./kept-trajectory.js";

/** Conversations of one prompt on which a step has trained. */
export interface KeptGroup {
  /** Number of that step, from 1. */
  step: number;
  trajectories: readonly KeptTrajectory[];
}

/** A group of an earlier step on which a step trains again. */
export interface ReplayedGroup {
  /** Number of steps since its first use, at least 1. */
  age: number;
  /** Their uid is unique to this group: a fresh group of the same prompt has another one. */
  trajectories: readonly Trajectory[];
}

/**
 * At most `size` groups of earlier steps on which later steps train again, in the manner of RePO (arXiv:2506.09340):
 * a step adds groups of the buffer to its own, with the advantages of their own groups. The choice follows from the
 * seed, the step and the buffer's content, never from a clock.
 *
 * A token takes 17 bytes, in memory as in a checkpoint (a third more): 256 groups of 8 conversations of 1,000 tokens
 * are 35 MB.
 */
export class ReplayBuffer {
  /** The oldest first. Never changed in place, because a checkpoint in progress may hold it. */
  private kept: readonly KeptGroup[] = [];

  constructor(
    private readonly options: ReplayOptions,
    private readonly seed: number,
  ) {}

  get groups(): readonly KeptGroup[] {
    return this.kept;
  }

  /**
   * Adds the groups of a step that were trained on, without failed conversations. The oldest groups are removed if
   * there is no room, or if they are too old.
   * @param advantages the largest of each trajectory, by its size; null: not trained on, but still part of its group's baseline.
   */
  add(step: number, trajectories: readonly Trajectory[], advantages: readonly (number | null)[]): void {
    const groups = new Map<string, number[]>();
    trajectories.forEach((trajectory, i) => {
      const { uid, tokenIds } = trajectory;
      if (!hasFailed(trajectory) && tokenIds.length > 0) groups.set(uid, [...(groups.get(uid) ?? []), i]);
    });
    const taught = [...groups.values()].filter((indices) => indices.some((i) => Math.abs(advantages[i] ?? 0) > 1e-8));
    const fresh = taught.map((indices) => ({
      step,
      trajectories: indices.map((i) => keepTrajectory(trajectories[i]!)),
    }));
    const young = this.kept.filter((group) => step + 1 - group.step <= this.options.maxAge);
    this.kept = [...young, ...fresh].slice(-this.options.size);
  }

  /** Restores the groups of a checkpoint. */
  restore(groups: readonly KeptGroup[]): void {
    this.kept = groups.slice(-this.options.size);
  }

  /**
   * Draws groups for a step with `own` groups: `share` times as many, or all if fewer. Each at most once, the oldest
   * first.
   */
  draw(step: number, own: number): ReplayedGroup[] {
    const { share, maxAge } = this.options;
    const young = this.kept.filter((group) => step - group.step <= maxAge);
    const count = Math.min(young.length, Math.round(share * own));
    const drawn = this.rank(step, young)
      .slice(0, count)
      .sort((a, b) => a - b);
    return drawn.map((index) => {
      const { step: of, trajectories } = young[index]!;
      const rename = (t: KeptTrajectory) => ({ ...t, uid: `${t.uid} of step ${of}` }) as Trajectory;
      return { age: step - of, trajectories: trajectories.map(rename) };
    });
  }

  /** Indices of groups, in the order of preference. */
  private rank(step: number, groups: readonly KeptGroup[]): number[] {
    const { sampling } = this.options;
    const newest = [...groups.keys()].reverse();
    if (sampling === "newest") return newest;
    if (sampling === "uniform") return [...shuffleIndices(groups.length, hashSeed(this.seed, "replay", step))];
    const variances = groups.map(({ trajectories }) => computeVariance(trajectories.map(({ reward }) => reward)));
    return newest.sort((a, b) => variances[b]! - variances[a]!);
  }
}

function computeVariance(values: readonly number[]): number {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
}
