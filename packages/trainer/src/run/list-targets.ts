import { usesLora } from "../config/derived-values.js";
import { importCritic } from "../config/import/updates.js";
import type { ConfigWarning } from "../config/list-warnings.js";
import { resolvePath } from "../config/paths.js";
import type { TargetModules } from "../config/sections/target-modules.js";
import type { TrainConfig } from "../config/train-config.js";
import { findMissingTargets } from "../hub/find-missing-targets.js";

/** Warns about targets of new adapters that the policy's or the critic's model does not have. */
export async function listTargetWarnings(config: TrainConfig, folder: string): Promise<ConfigWarning[]> {
  const { model } = config.actor_rollout_ref;
  const key = "actor_rollout_ref.model.target_modules";
  const adapters: { key: string; path: string; targets: TargetModules }[] = [];
  if (usesLora(config) && model.lora_adapter_path === null)
    adapters.push({ key, path: model.path, targets: model.target_modules });
  const { path, lora } = importCritic(config);
  const hasCritic = config.algorithm.adv_estimator === "gae";
  if (hasCritic && lora && (path !== model.path || lora.targets !== model.target_modules)) {
    const isOwn = config.critic.model.target_modules !== null;
    adapters.push({ key: isOwn ? "critic.model.target_modules" : key, path, targets: lora.targets });
  }
  const warnings = adapters.map(async ({ key, path, targets }) => {
    const missing = await findMissingTargets(resolvePath(folder, path), targets);
    return missing ? [{ key, ...missing }] : [];
  });
  return (await Promise.all(warnings)).flat();
}
