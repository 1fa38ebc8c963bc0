import { needsPreparation } from "@cria/algorithms/internal";
import type { Trajectory } from "@cria/core";
import { joinTrainSequences } from "../policy/paths.js";
import type { TokenScores } from "../policy/token-scores.js";
import type { SequenceScores } from "../policy/update-policy.js";
import type { StepParts } from "./step-parts.js";

/**
 * Where the logprobs before an update come from. `sampler`: the sampler's own, with bypass_mode. `pass`: a forward pass before the
 * update. `update`: the forward pass of the update itself, whose weights are the same, and in the same micro-batches the bits too.
 * It cannot serve a step with several updates: all but the first begin from other weights.
 */
export type OldLogprobsSource = "sampler" | "pass" | "update";

/** @param groups of the batch: its prompts. */
export function chooseOldLogprobs(
  { settings, registries, coordination }: Pick<StepParts, "settings" | "registries" | "coordination">,
  groups: number,
): OldLogprobsSource {
  const { algorithm, correction, distillation, loss, updates } = settings;
  if (correction.bypass) return "sampler";
  const isOneUpdate = updates.epochs === 1 && groups <= updates.miniBatchSize;
  const { needs = [] } = registries.advantageEstimators.get(algorithm.advantages);
  const isNeededBefore =
    algorithm.useKlInReward ||
    needs.includes("sumPiSquared") ||
    correction.rolloutIs !== null ||
    correction.rolloutRs.length > 0 ||
    correction.rolloutTokenVetoThreshold !== null ||
    needsPreparation(loss, registries) ||
    // They weigh the turns.
    (distillation !== null && distillation.turnWeights !== "none") ||
    // Workers are judged by these logprobs before anything is learned from them.
    coordination !== null;
  return updates.oldLogprobs === "auto" && isOneUpdate && !isNeededBefore ? "update" : "pass";
}

/** Puts the logprobs and entropies of an update's own pass into the scores of its trajectories. */
export function takeFromUpdate(
  found: ReadonlyMap<number, readonly SequenceScores[]>,
  trajectories: readonly Pick<Trajectory, "tokenIds" | "segments" | "responseMask">[],
  scores: Map<number, TokenScores>,
): void {
  for (const [index, sequences] of found) {
    const trajectory = trajectories[index]!;
    const join = (pick: (scores: SequenceScores) => Float32Array) =>
      joinTrainSequences(trajectory, trajectory.responseMask, sequences.map(pick));
    scores.set(index, {
      ...scores.get(index)!,
      oldLogprobs: join(({ logprobs }) => logprobs),
      entropy: join(({ entropy }) => entropy),
    });
  }
}

/** The greatest difference between the logprobs of a pass before the update and those of the update's own pass. */
export function compareWithUpdate(
  found: ReadonlyMap<number, readonly SequenceScores[]>,
  trajectories: readonly Pick<Trajectory, "tokenIds" | "segments" | "responseMask">[],
  scores: ReadonlyMap<number, TokenScores>,
): number {
  const own = new Map(scores);
  takeFromUpdate(found, trajectories, own);
  let most = 0;
  for (const [index, { oldLogprobs }] of own)
    trajectories[index]!.responseMask.forEach((bit, t) => {
      if (bit) most = Math.max(most, Math.abs(oldLogprobs[t]! - scores.get(index)!.oldLogprobs[t]!));
    });
  return most;
}
