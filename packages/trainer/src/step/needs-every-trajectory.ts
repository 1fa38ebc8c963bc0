import { needsNoAdvantage } from "@cria/algorithms/internal";
import type { Settings } from "../config/import/settings.js";
import type { Registries } from "../user-code/registries.js";

/**
 * True if trajectories without advantage must take part in the update, although that costs a forward pass. They must if
 * they have a gradient nevertheless; or if the gradient of others depends on them: rejection and veto remove tokens from
 * the denominators, and normalised weights are divided by a mean over the batch.
 */
export function needsEveryTrajectory(
  { loss, correction }: Pick<Settings, "loss" | "correction">,
  registries: Pick<Registries, "policyLosses">,
): boolean {
  return (
    needsNoAdvantage(loss, registries) ||
    correction.rolloutRs.length > 0 ||
    correction.rolloutTokenVetoThreshold !== null ||
    (correction.rolloutIs !== null && correction.rolloutIsBatchNormalize)
  );
}
