import type { Trajectory } from "@cria/core";
import { isUsableNumber } from "@cria/episodes/internal";

/**
 * Means of the extras of reward functions: numbers, and booleans as 0 and 1. Each mean is over the trajectories that
 * have the key. Numbers too large to sum are left out.
 */
export function averageExtras(trajectories: readonly Pick<Trajectory, "extraFields">[]): Record<string, number> {
  const sums = new Map<string, { sum: number; count: number }>();
  for (const { extraFields } of trajectories) {
    for (const [key, value] of Object.entries(extraFields)) {
      if (!isUsableNumber(value) && typeof value !== "boolean") continue;
      const entry = sums.get(key) ?? { sum: 0, count: 0 };
      entry.sum += Number(value);
      entry.count++;
      sums.set(key, entry);
    }
  }
  return Object.fromEntries([...sums].map(([key, { sum, count }]) => [key, sum / count]));
}
