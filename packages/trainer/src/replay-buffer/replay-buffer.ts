import { DataError, hasFailed, hashSeed, type Trajectory } from "@cria/core";
import type { BufferedGroup } from "@cria/rollout";
import { pickGroups } from "@cria/rollout/internal";
import { copyPlain } from "../checkpoints/plain-state.js";
import type { ReplayOptions } from "../config/options/algorithm.js";
import { measureSuccess } from "../rewards/measure-success.js";
import type { Registries } from "../user-code/registries.js";
import { keepTrajectory } from "./kept-trajectory.js";
import { type OpenedGroupSampler, openGroupSampler } from "./open-group-sampler.js";

/** Conversations of one prompt on which a step has trained. */
export interface KeptGroup {
  /** Number of that step, from 1. */
  step: number;
  /** Without texts (`keepTrajectory`). */
  trajectories: readonly Trajectory[];
}

/** A group of an earlier step on which a step trains again. */
export interface ReplayedGroup {
  /** Number of steps since its first use, at least 1. */
  age: number;
  /** Their uid is unique to this group: a fresh group of the same prompt has another one. */
  trajectories: readonly Trajectory[];
}

/** The state of a sampler of groups, in a checkpoint. */
export interface GroupSamplerState {
  name: string;
  state: unknown;
}

/**
 * At most `size` groups of earlier steps on which later steps train again, in the manner of RePO (arXiv:2506.09340):
 * a step adds groups of the buffer to its own, with the advantages of their own groups. The choice follows from the
 * seed, the step, the buffer's content and the sampler's state, never from a clock.
 *
 * A token takes 17 bytes, in memory as in a checkpoint (a third more): 256 groups of 8 conversations of 1,000 tokens
 * are 35 MB.
 */
export class ReplayBuffer {
  /** The oldest first. Never changed in place, because a checkpoint in progress may hold it. */
  private kept: readonly KeptGroup[] = [];
  private readonly opened: OpenedGroupSampler;

  /** @param samplers samplers of groups by name; default: the built-in ones. @throws ConfigError */
  constructor(
    private readonly options: ReplayOptions,
    private readonly seed: number,
    samplers?: Registries["groupSamplers"],
  ) {
    this.opened = openGroupSampler(options, seed, samplers);
  }

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

  /** A copy of the sampler's state; null: it has none. @throws DataError when JSON cannot represent it. */
  saveSampler(): GroupSamplerState | null {
    const { name, sampler } = this.opened;
    return sampler.save ? { name, state: copyPlain(sampler.save(), name) } : null;
  }

  /**
   * Restores the groups of a checkpoint, and the sampler's state.
   * @param saved null: the checkpoint has none, and the sampler begins without a history.
   * @throws DataError when the state is another sampler's.
   */
  restore(groups: readonly KeptGroup[], saved: GroupSamplerState | null = null): void {
    const { name, sampler } = this.opened;
    if (saved && saved.name !== name)
      throw new DataError("holds the state of another sampler of groups", {
        code: "data/checkpoint-mismatch",
        subject: "the checkpoint",
        expected: saved.name,
        received: name,
        remedy: "resume with that sampler, or start a new run",
      });
    this.kept = groups.slice(-this.options.size);
    if (saved) sampler.restore?.(structuredClone(saved.state));
  }

  /**
   * Draws groups for a step with `own` groups: `share` times as many, or all if fewer. Each at most once, the oldest
   * first. A sampler of the user's may pick fewer.
   * @throws DataError when that sampler throws, or picks what is not there.
   */
  draw(step: number, own: number): ReplayedGroup[] {
    const { share, maxAge } = this.options;
    const young = this.kept.filter((group) => step - group.step <= maxAge);
    const count = Math.min(young.length, Math.round(share * own));
    if (count === 0) return [];
    const { name, sampler } = this.opened;
    const groups = young.map((group) => describeGroup(group, step));
    const request = { step, count, groups, seed: hashSeed(this.seed, "replay", step) };
    const drawn = [...pickGroups(sampler, request, name)].sort((a, b) => a - b);
    return drawn.map((index) => {
      const { step: of, trajectories } = young[index]!;
      const rename = (t: Trajectory) => ({ ...t, uid: `${t.uid} of step ${of}` });
      return { age: step - of, trajectories: trajectories.map(rename) };
    });
  }
}

/** Describes a group to a sampler. @param step the step that may learn from it. */
function describeGroup({ step: of, trajectories }: KeptGroup, step: number): BufferedGroup {
  const { uid, dataSource } = trajectories[0]!;
  return {
    step: of,
    age: step - of,
    uid,
    dataSource,
    rewards: trajectories.map(({ reward }) => reward),
    tokens: trajectories.map(({ responseMask }) => responseMask.reduce((sum, bit) => sum + bit, 0)),
    success: measureSuccess(trajectories),
  };
}
