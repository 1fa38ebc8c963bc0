import { correctsTokensAlone, needsPreparation } from "@cria/algorithms/internal";
import type { Trajectory } from "@cria/core";
import { joinTrainSequences } from "../policy/paths.js";
import type { SequenceScores } from "../policy/update-policy.js";
import type { StepParts } from "./step-parts.js";

/**
 * Source of the logprobs before an update. `sampler`: the sampler's own, with bypass_mode or where a pass would give
 * the same bits. `pass`: a forward pass before the update. `update`: the forward pass of the update itself. That pass
 * has the same weights, and the same bits if the micro-batches are the same. It cannot serve a step with several
 * updates, because all but the first start from other weights.
 */
export type OldLogprobsSource = "sampler" | "pass" | "update";

/** Facts on which the choice depends beside the settings. */
export interface OldLogprobsFacts {
  /** All trajectories that may be learned from. */
  trajectories: readonly Pick<Trajectory, "ownLoop">[];
  /** True if the step may learn from groups of earlier steps. */
  isReplaying: boolean;
}

/**
 * True if a pass would give the sampler's logprobs again, bit for bit: the engine says so, the weights that learn are
 * those that sampled, and each token in the loss was sampled here, from the whole vocabulary.
 */
function areSamplersOwn(
  { settings, policy, coordination }: Pick<StepParts, "settings" | "policy" | "coordination">,
  { trajectories, isReplaying }: OldLogprobsFacts,
): boolean {
  return (
    policy.engine.info.samplesAsTrained &&
    settings.lag === 0 &&
    !isReplaying &&
    coordination === null &&
    !settings.environment.trainOnConstrainedTokens &&
    trajectories.every(({ ownLoop }) => !ownLoop)
  );
}

/** @param groups number of prompts in the batch; infinite while it is not known. */
export function chooseOldLogprobs(parts: StepParts, facts: OldLogprobsFacts, groups: number): OldLogprobsSource {
  const { settings, registries, coordination } = parts;
  const { algorithm, correction, distillation, loss, updates } = settings;
  if (correction.bypass) return "sampler";
  if (updates.oldLogprobs !== "auto") return "pass";
  const isOneUpdate = updates.epochs === 1 && groups <= updates.miniBatchSize;
  const { needs = [] } = registries.advantageEstimators.get(algorithm.advantages);
  const isNeededBefore =
    algorithm.useKlInReward ||
    needs.includes("sumPiSquared") ||
    !correctsTokensAlone(correction) ||
    needsPreparation(loss, registries) ||
    // The logprobs determine the weights of the turns.
    (distillation !== null && distillation.turnWeights !== "none") ||
    // Workers' logprobs are compared with these before the update.
    coordination !== null;
  if (isOneUpdate && !isNeededBefore) return "update";
  return !needs.includes("sumPiSquared") && areSamplersOwn(parts, facts) ? "sampler" : "pass";
}

type Learned = readonly Pick<Trajectory, "tokenIds" | "segments" | "responseMask">[];

/** Reads the logprobs or entropies of an update's own pass, as long as each trajectory's tokens. */
export function readUpdate(
  found: ReadonlyMap<number, readonly SequenceScores[]>,
  trajectories: Learned,
  pick: (scores: SequenceScores) => Float32Array,
): Map<number, Float32Array> {
  const read = (index: number, sequences: readonly SequenceScores[]) => {
    const trajectory = trajectories[index]!;
    return joinTrainSequences(trajectory, trajectory.responseMask, sequences.map(pick));
  };
  return new Map([...found].map(([index, sequences]) => [index, read(index, sequences)]));
}

/** Maximum absolute difference of two logprobs of a sampled token, over the trajectories that both have. */
export function findGreatestDifference(
  a: ReadonlyMap<number, Float32Array>,
  b: ReadonlyMap<number, Float32Array>,
  trajectories: Learned,
): number {
  let most = 0;
  for (const [index, logprobs] of a) {
    const others = b.get(index);
    trajectories[index]!.responseMask.forEach((bit, t) => {
      if (bit && others) most = Math.max(most, Math.abs(logprobs[t]! - others[t]!));
    });
  }
  return most;
}
