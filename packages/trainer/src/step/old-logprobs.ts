import { needsPreparation } from "@cria/algorithms/internal";
import type { Trajectory } from "@cria/core";
import { joinTrainSequences } from "../policy/paths.js";
import type { TokenScores } from "../policy/token-scores.js";
import type { SequenceScores } from "../policy/update-policy.js";
import type { StepParts } from "./step-parts.js";

/**
 * Source of the logprobs before an update. `sampler`: the sampler's own, with bypass_mode. `pass`: a forward pass
 * before the update. `update`: the forward pass of the update itself. That pass has the same weights, and the same bits
 * if the micro-batches are the same. It cannot serve a step with several updates, because all but the first start from
 * other weights.
 */
export type OldLogprobsSource = "sampler" | "pass" | "update";

/** @param groups number of prompts in the batch. */
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
    // The logprobs determine the weights of the turns.
    (distillation !== null && distillation.turnWeights !== "none") ||
    // Workers' logprobs are compared with these before the update.
    coordination !== null;
  return updates.oldLogprobs === "auto" && isOneUpdate && !isNeededBefore ? "update" : "pass";
}

/** Copies the logprobs and entropies of an update's own pass into the scores of its trajectories. */
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

/** Maximum absolute difference between the logprobs of a pass before the update and those of the update's own pass. */
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
