import type { Trajectory } from "@cria/core";
import type { Session } from "../run/session-type.js";
import type { Stopwatch } from "./stopwatch.js";

/** What the update needs to know of a trajectory's tokens; arrays as long as `tokenIds`. */
export interface TokenScores {
  /** By the training graph, so that the ratio is exactly 1 before the first update; with bypass_mode by the sampler. */
  oldLogprobs: Float32Array;
  /** null with bypass_mode: nothing was evaluated. */
  entropy: Float32Array | null;
  /** Of the squared probabilities of each distribution; null where the advantage estimator does not need it. */
  sumPiSquared: Float32Array | null;
  /** By the reference policy; null where no KL term needs it. */
  refLogprobs: Float32Array | null;
}

/** Adds the scores of the trajectories at `indices` that `scores` does not have yet. */
export async function scoreTrajectories(
  session: Session,
  trajectories: readonly Pick<Trajectory, "tokenIds" | "promptLength" | "rolloutLogprobs">[],
  indices: readonly number[],
  scores: Map<number, TokenScores>,
  clock: Stopwatch,
): Promise<void> {
  const { engine, config, reference, registries } = session;
  const missing = indices.filter((i) => !scores.has(i));
  if (missing.length === 0) return;
  const sequences = missing.map((i) => ({ tokenIds: trajectories[i]!.tokenIds, from: trajectories[i]!.promptLength }));
  const options = { temperature: config.actor_rollout_ref.rollout.temperature, signal: session.rollout.signal };
  const { needs } = registries.advantageEstimators.get(config.algorithm.adv_estimator);
  const squares = needs?.includes("sumPiSquared") ? { sumPiSquared: true } : {};
  const old = config.algorithm.rollout_correction.bypass_mode
    ? missing.map((i) => ({ logprobs: trajectories[i]!.rolloutLogprobs, entropy: null, sumPiSquared: null }))
    : await clock.time("old_log_prob", () => engine.score(sequences, { ...options, entropy: true, ...squares }));
  const ref = reference
    ? await clock.time("ref", () => reference.score(sequences, { ...options, adapter: false }))
    : null;
  missing.forEach((index, k) => {
    scores.set(index, {
      oldLogprobs: old[k]!.logprobs,
      entropy: old[k]!.entropy,
      sumPiSquared: old[k]!.sumPiSquared,
      refLogprobs: ref ? ref[k]!.logprobs : null,
    });
  });
}
