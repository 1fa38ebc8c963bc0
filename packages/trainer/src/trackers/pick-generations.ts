import { hasFailed, hashSeed, type Trajectory } from "@cria/core";
import type { Session } from "../run/session-type.js";
import type { Generation } from "./generation.js";

/**
 * `count` conversations of a validation, drawn once for the run: every validation shows the same prompts. One that failed has
 * no score, and makes room for another.
 */
export function pickGenerations(session: Session, trajectories: readonly Trajectory[], count: number): Generation[] {
  const truths = new Map(session.valRows.map((row) => [row.uid, row.groundTruth]));
  return trajectories
    .filter((trajectory) => !hasFailed(trajectory))
    .map((trajectory) => ({ trajectory, rank: hashSeed(42, trajectory.uid, trajectory.sampleIndex) }))
    .sort((a, b) => a.rank - b.rank)
    .slice(0, count)
    .map(({ trajectory: { uid, tokenIds, promptLength, reward } }) => ({
      input: session.engine.detokenize(tokenIds.subarray(0, promptLength)),
      output: session.engine.detokenize(tokenIds.subarray(promptLength)),
      groundTruth: truths.get(uid),
      score: reward,
    }));
}
