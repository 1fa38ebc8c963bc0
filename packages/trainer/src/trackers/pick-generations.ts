import { hasFailed, hashSeed, type PolicyEngine, type Trajectory } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import type { Generation } from "./generation.js";

/**
 * Picks `count` conversations of a validation, drawn once for the run, so that every validation shows the same
 * prompts. A failed conversation has no score and is replaced by another.
 */
export function pickGenerations(
  engine: Pick<PolicyEngine, "detokenize">,
  rows: readonly DatasetRow[],
  trajectories: readonly Trajectory[],
  count: number,
): Generation[] {
  const truths = new Map(rows.map((row) => [row.uid, row.groundTruth]));
  return trajectories
    .filter((trajectory) => !hasFailed(trajectory))
    .map((trajectory) => ({ trajectory, rank: hashSeed(42, trajectory.uid, trajectory.sampleIndex) }))
    .sort((a, b) => a.rank - b.rank)
    .slice(0, count)
    .map(({ trajectory: { uid, tokenIds, promptLength, reward } }) => ({
      input: engine.detokenize(tokenIds.subarray(0, promptLength)),
      output: engine.detokenize(tokenIds.subarray(promptLength)),
      groundTruth: truths.get(uid),
      score: reward,
    }));
}
