import type { AdvantageOutputs } from "@cria/algorithms";
import type { Trajectory } from "@cria/core";
import type { ReplayedGroup } from "../replay-buffer/replay-buffer.js";
import { cutTokens } from "./advantages.js";

/** What a step learns from beside its own groups. */
export interface Replayed {
  groups: readonly ReplayedGroup[];
  /** Of all groups, one after the other. */
  trajectories: readonly Trajectory[];
  /** As long as each trajectory's tokens. */
  advantages: readonly Float32Array[];
  /** All groups for each of the step's own, at least 1: mini-batches grow by it, so that a step has as many updates as without. */
  growth: number;
}

/**
 * Draws groups of earlier steps for a step that has some of its own; a step without any learns from none.
 * @param estimate of one group: beside others an estimator may say something else of it.
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
 * @param weights of the rollout correction, by index among all that was learned from; null: nothing weighs beside the ratio of the loss.
 * @param first index of the replayed ones.
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
