import type { Trajectory } from "@cria/core";
import { evaluatePaths } from "../policy/paths.js";
import type { Policy } from "../policy/policy.js";
import type { PolicyScoreOptions, TokenScores } from "../policy/token-scores.js";
import type { Stopwatch } from "../timing/stopwatch.js";
import type { OldLogprobsSource } from "./old-logprobs.js";
import type { Taught, Teachers } from "./teachers.js";

export interface ScoreTrajectoriesOptions {
  /** Temperature at which they were sampled. */
  temperature: number;
  /** Source of `oldLogprobs`. Without a pass they are the sampler's, until an update's own pass replaces them. */
  source: OldLogprobsSource;
  sumPiSquared: boolean;
  reference: boolean;
  teachers: Teachers | null;
  signal?: AbortSignal;
  /** Computes scores somewhere else; default: in this process. */
  compute?: PolicyScoreOptions["compute"];
}

/** Adds the missing scores of the trajectories at `indices` to `scores`. */
export async function scoreTrajectories(
  policy: Policy,
  trajectories: readonly (Taught & Pick<Trajectory, "rolloutLogprobs">)[],
  indices: readonly number[],
  scores: Map<number, TokenScores>,
  { temperature, source, sumPiSquared, reference, teachers, signal, compute }: ScoreTrajectoriesOptions,
  clock: Stopwatch,
): Promise<void> {
  const missing = indices.filter((i) => !scores.has(i));
  if (missing.length === 0) return;
  const { sequences, join } = evaluatePaths(missing.map((i) => trajectories[i]!));
  const joinAll = (values: readonly (Float32Array | null)[]) =>
    values.every((array) => array !== null) ? join(values) : null;
  const scored =
    source !== "pass"
      ? null
      : await clock.time("old_log_prob", () =>
          policy.score(sequences, { temperature, signal, entropy: true, sumPiSquared, compute }),
        );
  const old = scored ? join(scored.map(({ oldLogprobs }) => oldLogprobs)) : null;
  const entropy = scored && joinAll(scored.map((scores) => scores.entropy));
  const squares = scored && joinAll(scored.map((scores) => scores.sumPiSquared));
  const ref = reference
    ? join(await clock.time("ref", () => policy.scoreReference(sequences, { temperature, signal, compute })))
    : null;
  const taught = teachers
    ? await clock.time("teacher", () =>
        teachers.score(
          missing.map((i) => trajectories[i]!),
          { temperature, signal },
        ),
      )
    : null;
  missing.forEach((index, k) => {
    scores.set(index, {
      oldLogprobs: old?.[k] ?? trajectories[index]!.rolloutLogprobs,
      entropy: entropy?.[k] ?? null,
      sumPiSquared: squares?.[k] ?? null,
      refLogprobs: ref?.[k] ?? null,
      teacherLogprobs: taught?.[k]?.logprobs ?? null,
      teacherLikeliest: taught?.[k]?.likeliest ?? null,
    });
  });
}
