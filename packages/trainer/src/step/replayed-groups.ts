import type { AdvantageOutputs } from "@cria/algorithms";
import type { Trajectory } from "@cria/core";
import type { ReplayedGroup } from "../replay-buffer/replay-buffer.js";
import { cutTokens } from "./advantages.js";

/** Groups of earlier steps that a step learns from in addition to its own. */
export interface Replayed {
  groups: readonly ReplayedGroup[];
  /** Trajectories of all groups, concatenated. */
  trajectories: readonly Trajectory[];
  /** Advantages of each trajectory, as long as its tokens. */
  advantages: readonly Float32Array[];
  /**
   * Number of all groups divided by the step's own, at least 1. The mini-batch size is multiplied by it, so that the
   * number of updates stays the same.
   */
  growth: number;
}

/**
 * Draws groups of earlier steps for a step that has groups of its own; otherwise draws none.
 * @param estimate estimates advantages of one group. Each group is estimated alone, because an estimator's result may
 * depend on the other groups.
 */
export function replayGroups(
  draw: ((own: number) => readonly ReplayedGroup[]) | undefined,
  own: readonly Trajectory[],
  estimate: (group: readonly Trajectory[]) => AdvantageOutputs,
): Replayed {
  const count = new Set(own.map(({ uid }) => uid)).size;
  const groups = count > 0 ? (draw?.(count) ?? []) : [];
  return {
    groups,
    trajectories: groups.flatMap(({ trajectories }) => trajectories),
    advantages: groups.flatMap(({ trajectories }) => cutTokens(trajectories, estimate(trajectories).advantages)),
    growth: 1 + groups.length / Math.max(1, count),
  };
}

/**
 * @param weights weights of the rollout correction, by index among all trajectories of the batch; null: there are no
 * weights besides the loss's ratio.
 * @param first index of the first replayed trajectory.
 */
export function measureReplayed(
  { groups, trajectories }: Replayed,
  weights: ReadonlyMap<number, Float32Array> | null,
  first: number,
): Record<string, number> {
  const metrics: Record<string, number> = {
    "replay/groups": groups.length,
    "replay/conversations": trajectories.length,
  };
  const spread = (name: string, values: readonly number[]) => {
    if (values.length === 0) return;
    metrics[`replay/${name}/mean`] = values.reduce((a, b) => a + b, 0) / values.length;
    metrics[`replay/${name}/max`] = values.reduce((a, b) => Math.max(a, b));
    metrics[`replay/${name}/min`] = values.reduce((a, b) => Math.min(a, b));
  };
  spread(
    "age",
    groups.map(({ age }) => age),
  );
  const sampled = trajectories.flatMap(({ responseMask }, i) =>
    Array.from(weights?.get(first + i) ?? []).filter((_, t) => responseMask[t] === 1),
  );
  spread("weight", sampled);
  return metrics;
}
