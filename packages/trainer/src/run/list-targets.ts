import { usesLora } from "../config/derived-values.js";
import { importCritic } from "../config/import/updates.js";
import type { ConfigWarning } from "../config/list-warnings.js";
import { resolvePath } from "../config/paths.js";
import { linearLayers, listMissingTargets, type TargetModules } from "../config/sections/target-modules.js";
import type { TrainConfig } from "../config/train-config.js";
import { readModelHeader } from "../hub/read-model-header.js";

/**
 * Warns about targets of new adapters that the policy's or the critic's model does not have, while it has others: the
 * adapter would be smaller than its config says. Loading reports a list of which the model has none. Models whose files
 * are missing or cannot be read are skipped.
 */
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
    if (targets === "all-linear") return [];
    const layers = await readLayers(resolvePath(folder, path));
    if (layers === null) return [];
    const missing = listMissingTargets(targets, layers);
    if (missing.length === 0 || missing.length === targets.length) return [];
    return [
      {
        key,
        found: `names layers that ${path} does not have, and that are therefore not trained: ${missing.join(", ")}`,
        remedy: `leave ${missing.length === 1 ? "it" : "them"} out, or name others of its layers: ${[...layers].sort().join(", ")}`,
      },
    ];
  });
  return (await Promise.all(warnings)).flat();
}

/** Names of the layers that an adapter can change; null if the file cannot be read, which loading the model reports. */
async function readLayers(path: string): Promise<Set<string> | null> {
  const header = await readModelHeader(path);
  if (header === null) return null;
  const names = header.tensors.map(({ name }) => /^(?:blk\.\d+\.)?(.+)\.weight$/.exec(name)?.[1] ?? "");
  return new Set(names.filter((name) => linearLayers.has(name)));
}
