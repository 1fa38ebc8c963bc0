import type { Trajectory } from "@cria/core";

/** Of a trajectory's extra fields, those that are no extra of the reward function. */
const own = new Set(["score", "toolScore", "interactionScore"]);

/**
 * Means of what reward functions gave besides the score: numbers, and booleans as 0 and 1. Keys may be ragged: each mean is
 * over the trajectories that have the key.
 */
export function averageExtras(trajectories: readonly Pick<Trajectory, "extraFields">[]): Record<string, number> {
  const sums = new Map<string, { sum: number; count: number }>();
  for (const { extraFields } of trajectories) {
    for (const [key, value] of Object.entries(extraFields)) {
      if (own.has(key) || (typeof value !== "number" && typeof value !== "boolean")) continue;
      const entry = sums.get(key) ?? { sum: 0, count: 0 };
      entry.sum += Number(value);
      entry.count++;
      sums.set(key, entry);
    }
  }
  return Object.fromEntries([...sums].map(([key, { sum, count }]) => [key, sum / count]));
}
