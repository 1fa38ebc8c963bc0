import { klEstimates } from "@cria/algorithms";
import type { Trajectory } from "@cria/core";
import { evaluatePaths } from "../policy/paths.js";
import type { Policy } from "../policy/policy.js";
import type { TokenScores } from "../policy/token-scores.js";

export interface MeasureUpdateInputs {
  trajectories: readonly Pick<Trajectory, "tokenIds" | "segments" | "promptLength" | "responseMask">[];
  /** Scores from before the update, by index of trajectory. */
  scores: ReadonlyMap<number, TokenScores>;
  /** Share of the scored trajectories to score again; at least one is scored. */
  ratio: number;
  temperature: number;
}

/**
 * Measures how far an update moved the policy: KL(before, after) by k3, averaged over the sampled tokens of some
 * trajectories, which are scored again. They are spread evenly over the trajectories scored before the update. The
 * loss's own `ppo_kl` cannot replace it: it is 0 in the first optimizer step of a batch.
 * @returns null if nothing was scored.
 */
export async function measureUpdate(
  policy: Policy,
  { trajectories, scores, ratio, temperature }: MeasureUpdateInputs,
): Promise<number | null> {
  const indices = pickEvenly(
    [...scores.keys()].sort((a, b) => a - b),
    ratio,
  );
  if (indices.length === 0) return null;
  const { sequences, join } = evaluatePaths(indices.map((i) => trajectories[i]!));
  const after = join((await policy.score(sequences, { temperature })).map(({ oldLogprobs }) => oldLogprobs));
  const estimate = klEstimates.get("k3");
  let sum = 0;
  let count = 0;
  indices.forEach((index, k) => {
    const { oldLogprobs } = scores.get(index)!;
    trajectories[index]!.responseMask.forEach((bit, t) => {
      if (!bit) return;
      sum += estimate(oldLogprobs[t]! - after[k]![t]!).value;
      count++;
    });
  });
  return count > 0 ? sum / count : null;
}

/** Picks a share of the values at even distances, in order; at least one if there are any. */
function pickEvenly(values: readonly number[], ratio: number): number[] {
  const count = Math.min(values.length, Math.ceil(ratio * values.length));
  return Array.from({ length: count }, (_, k) => values[Math.floor(((k + 0.5) * values.length) / count)]!);
}
