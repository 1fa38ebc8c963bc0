import type { Settings } from "../config/import/settings.js";
import type { Registries } from "../user-code/registries.js";

/**
 * Whether trajectories without advantage take part in the update although that costs a pass. They do if they have a gradient through
 * the KL term, the teacher, the entropy term or the loss itself; or if the gradient of others depends on them: rejection and veto take tokens out
 * of the denominators, and normalised weights are divided by a mean over the batch.
 */
export function needsEveryTrajectory(
  { loss, correction }: Pick<Settings, "loss" | "correction">,
  { policyLosses }: Pick<Registries, "policyLosses">,
): boolean {
  return (
    loss.kl !== null ||
    loss.teacher !== null ||
    loss.entropyCoeff !== 0 ||
    correction.rolloutRs.length > 0 ||
    correction.rolloutTokenVetoThreshold !== null ||
    (correction.rolloutIs !== null && correction.rolloutIsBatchNormalize) ||
    !policyLosses.resolve(loss.lossMode).vanishesWithoutAdvantage
  );
}
