import { hasFailed, hashSeed, type Trajectory } from "@cria/core";
import { shuffleIndices } from "@cria/core/internal";
import type { ReplayOptions } from "../config/options/algorithm.js";
import { type KeptTrajectory, keepTrajectory } from "./kept-trajectory.js";

/** Conversations of one prompt that a step has learned from. */
export interface KeptGroup {
  /** That step, from 1. */
  step: number;
  trajectories: readonly KeptTrajectory[];
}

/** A group of an earlier step that a step learns from once more. */
export interface ReplayedGroup {
  /** Steps since it was learned from first, at least 1. */
  age: number;
  /** Their uid is of this group alone: a fresh group of the same prompt is another one. */
  trajectories: readonly Trajectory[];
}

/**
 * Groups of earlier steps, at most `size`, of which later steps learn once more, in the manner of RePO (arXiv:2506.09340): beside its
 * own groups a step has some of the buffer's, whose advantages are their own group's. Which ones follows from seed, step and what was
 * learned from before, never from a clock.
 *
 * A token takes 17 bytes, in memory as in a checkpoint (a third more): 256 groups of 8 conversations of 1,000 tokens are 35 MB.
 */
export class ReplayBuffer {
  /** The oldest first. Never changed in place: a checkpoint that is being written has its own. */
  private kept: readonly KeptGroup[] = [];

  constructor(
    private readonly options: ReplayOptions,
    private readonly seed: number,
  ) {}

  get groups(): readonly KeptGroup[] {
    return this.kept;
  }

  /**
   * Takes the groups of a step that taught something, without failed conversations; the oldest go where there is no place, or where
   * they are too old.
   * @param advantages mean of each trajectory; null: it taught nothing. It still counts in the baseline of its group.
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

  /** Goes on with the groups of a checkpoint. */
  restore(groups: readonly KeptGroup[]): void {
    this.kept = groups.slice(-this.options.size);
  }

  /** Groups for a step that has so many of its own: `share` times as many, or all there are. Each once, the oldest first. */
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

  /** Indices of groups, those to be drawn first. */
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
