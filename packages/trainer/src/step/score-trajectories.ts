import type { Trajectory } from "@cria/core";
import type { Coordination } from "../cluster/training-bus.js";
import { listPolicies, ofRole } from "../policy/of-role.js";
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
  compute?: Coordination["score"];
}

/** The parts of a trajectory that its scores depend on. */
type Scored = Taught & Pick<Trajectory, "rolloutLogprobs" | "timeline">;

/**
 * Adds the missing scores of the trajectories at `indices` to `scores`. Where each role has an adapter, it scores the
 * role's own tokens.
 */
export async function scoreTrajectories(
  policy: Policy,
  trajectories: readonly Scored[],
  indices: readonly number[],
  scores: Map<number, TokenScores>,
  { temperature, source, sumPiSquared, reference, teachers, signal, compute }: ScoreTrajectoriesOptions,
  clock: Stopwatch,
): Promise<void> {
  const missing = indices.filter((i) => !scores.has(i));
  const options = { temperature, source, sumPiSquared, reference, signal, compute };
  for (const [role, own] of listPolicies(policy)) {
    const shown = trajectories.map((trajectory) => ofRole(trajectory, role));
    const played = role === null ? missing : missing.filter((i) => shown[i]!.responseMask.includes(1));
    const found = new Map<number, TokenScores>();
    await scoreByPolicy(own, shown, played, found, options, clock);
    for (const [i, of] of found) scores.set(i, scores.has(i) ? joinScores(scores.get(i)!, of, shown[i]!) : of);
  }
  const untaught = indices.filter((i) => teachers && scores.get(i)!.teacherLogprobs === null);
  if (!teachers || untaught.length === 0) return;
  const taught = await clock.time("teacher", () =>
    teachers.score(
      untaught.map((i) => trajectories[i]!),
      { temperature, signal },
    ),
  );
  untaught.forEach((index, k) => {
    const { logprobs, likeliest } = taught[k]!;
    scores.set(index, { ...scores.get(index)!, teacherLogprobs: logprobs, teacherLikeliest: likeliest ?? null });
  });
}

async function scoreByPolicy(
  policy: Policy,
  trajectories: readonly Scored[],
  missing: readonly number[],
  scores: Map<number, TokenScores>,
  {
    temperature,
    source,
    sumPiSquared,
    reference,
    signal,
    compute: elsewhere,
  }: Omit<ScoreTrajectoriesOptions, "teachers">,
  clock: Stopwatch,
): Promise<void> {
  if (missing.length === 0) return;
  const { sequences, owners, join } = evaluatePaths(missing.map((i) => trajectories[i]!));
  const compute: PolicyScoreOptions["compute"] =
    elsewhere &&
    ((shard, here, indices) => {
      const scored = new Set(Array.from(indices, (k) => trajectories[missing[owners[k]!]!]!));
      return elsewhere(shard, here, [...scored]);
    });
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
  missing.forEach((index, k) => {
    scores.set(index, {
      oldLogprobs: old?.[k] ?? trajectories[index]!.rolloutLogprobs,
      entropy: entropy?.[k] ?? null,
      sumPiSquared: squares?.[k] ?? null,
      refLogprobs: ref?.[k] ?? null,
      teacherLogprobs: null,
      teacherLikeliest: null,
    });
  });
}

/** Scores with those of another role at the role's tokens. */
function joinScores(
  scores: TokenScores,
  own: TokenScores,
  { responseMask }: Pick<Trajectory, "responseMask">,
): TokenScores {
  const pick = (name: "oldLogprobs" | "entropy" | "sumPiSquared" | "refLogprobs") =>
    scores[name] && own[name] && scores[name].map((value, t) => (responseMask[t] ? own[name]![t]! : value));
  return {
    ...scores,
    oldLogprobs: pick("oldLogprobs")!,
    entropy: pick("entropy"),
    sumPiSquared: pick("sumPiSquared"),
    refLogprobs: pick("refLogprobs"),
  };
}
