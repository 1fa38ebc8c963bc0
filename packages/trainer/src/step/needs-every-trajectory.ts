import type { Settings } from "../config/import/settings.js";
import type { Registries } from "../user-code/registries.js";

/**
 * True if trajectories without advantage must take part in the update, although that costs a forward pass. They must if
 * they have a gradient through the KL term, the teacher, the entropy term, observations or the loss itself; or if the gradient of
 * others depends on them: rejection and veto remove tokens from the denominators, and normalised weights are divided by
 * a mean over the batch.
 */
export function needsEveryTrajectory(
  { loss, correction }: Pick<Settings, "loss" | "correction">,
  { policyLosses }: Pick<Registries, "policyLosses">,
): boolean {
  return (
    loss.kl !== null ||
    loss.teacher !== null ||
    loss.entropyCoeff !== 0 ||
    loss.observationCoeff > 0 ||
    correction.rolloutRs.length > 0 ||
    correction.rolloutTokenVetoThreshold !== null ||
    (correction.rolloutIs !== null && correction.rolloutIsBatchNormalize) ||
    !policyLosses.resolve(loss.lossMode).vanishesWithoutAdvantage
  );
}
