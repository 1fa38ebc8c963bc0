import type { Trajectory } from "@cria/core";
import type { Policy } from "../policy/policy.js";
import type { TokenScores } from "../policy/token-scores.js";
import type { Stopwatch } from "../stopwatch.js";

export interface ScoreTrajectoriesOptions {
  /** At which they were sampled. */
  temperature: number;
  /** Take the sampler's logprobs as `oldLogprobs`, without evaluating the trajectories. */
  bypass: boolean;
  sumPiSquared: boolean;
  reference: boolean;
  signal?: AbortSignal;
}

/** Adds the scores of the trajectories at `indices` that `scores` does not have yet. */
export async function scoreTrajectories(
  policy: Policy,
  trajectories: readonly Pick<Trajectory, "tokenIds" | "promptLength" | "rolloutLogprobs">[],
  indices: readonly number[],
  scores: Map<number, TokenScores>,
  { temperature, bypass, sumPiSquared, reference, signal }: ScoreTrajectoriesOptions,
  clock: Stopwatch,
): Promise<void> {
  const missing = indices.filter((i) => !scores.has(i));
  if (missing.length === 0) return;
  const sequences = missing.map((i) => ({ tokenIds: trajectories[i]!.tokenIds, from: trajectories[i]!.promptLength }));
  const old = bypass
    ? missing.map((i) => ({ oldLogprobs: trajectories[i]!.rolloutLogprobs, entropy: null, sumPiSquared: null }))
    : await clock.time("old_log_prob", () =>
        policy.score(sequences, { temperature, signal, entropy: true, sumPiSquared }),
      );
  const ref = reference
    ? await clock.time("ref", () => policy.scoreReference(sequences, { temperature, signal }))
    : null;
  missing.forEach((index, k) => {
    scores.set(index, { ...old[k]!, refLogprobs: ref?.[k] ?? null });
  });
}
