import { stat } from "node:fs/promises";
import { inspectCuda, readGguf } from "@cria/engine";
import { listTrainableArchitectures, readTowerShape } from "@cria/engine/internal";
import { isAddress, readHubSettings, resolveProjector } from "@cria/hub/internal";
import type { TrainConfig } from "@cria/trainer";
import {
  describeContext,
  findModelFile,
  listContexts,
  listContextWarnings,
  listInert,
  listTargetWarnings,
  listWarnings,
  resolvePath,
  usesLora,
} from "@cria/trainer/internal";
import { formatBytes } from "../terminal/format-bytes.js";
import { readAvailableMemory } from "./available-memory.js";
import { bad, type Check, ok } from "./check.js";
import {
  estimateMemory,
  type MemoryItem,
  type ModelShape,
  type OtherModel,
  type ProjectorNeed,
  readModelShape,
} from "./estimate-memory.js";

export interface MemoryNeed {
  items: MemoryItem[];
  /** Bytes, as `available`. */
  needed: number;
  available: number;
  fits: boolean;
}

export interface ExaminedConfig {
  /** Checks of the config's values, of its models and of their memory. */
  checks: Check[];
  /** null when the file cannot be read. */
  model: ModelShape | null;
  memory: MemoryNeed | null;
}

/**
 * Examines a config's demands on its models and this machine, before anything is loaded: it reads only the models'
 * headers.
 * @param available bytes of memory.
 */
export async function examineConfig(config: TrainConfig, folder: string, available: number): Promise<ExaminedConfig> {
  const settings = [...listWarnings(config), ...(await listTargetWarnings(config, folder)), ...listInert(config)];
  const checks = settings.map(({ key, found, remedy }) =>
    bad("warning", key.endsWith(".lr") ? "learning rate" : "settings", found, `${key}: ${remedy}`, key),
  );
  let path = resolvePath(folder, config.actor_rollout_ref.model.path);
  let model: ModelShape;
  try {
    const file = await findModelFile(path);
    if (file === null) {
      const remedy = "cria train downloads it; what it needs is known then";
      checks.push(bad("warning", "model", `${path} is not in the cache of ${readHubSettings().endpoint}`, remedy));
      return { checks, model: null, memory: null };
    }
    path = file;
    model = readModelShape(await readGguf(path));
  } catch (error) {
    checks.push(bad("problem", "model", (error as Error).message, "check actor_rollout_ref.model.path"));
    return { checks, model: null, memory: null };
  }
  checks.push(checkModel(path, model, config), ...(await checkContexts(config, folder)));
  const items = estimateMemory(model, config, {
    projector: await measureProjector(config, folder),
    teachers: await readTeachers(config, folder),
  });
  const needed = items.reduce((sum, item) => sum + item.bytes, 0);
  const memory = { items, needed, available, fits: needed <= available };
  checks.push(checkFit(memory));
  return { checks, model, memory };
}

/**
 * Warnings before a training loads its model: too little memory. Problems of loading are reported by loading, and those
 * of settings by `train`.
 */
export async function listTrainWarnings(config: TrainConfig, folder: string): Promise<Check[]> {
  const { checks, memory } = await examineConfig(config, folder, readAvailableMemory());
  const isTight = memory !== null && !memory.fits && !usesGpu(config);
  return isTight ? checks.filter(({ name }) => name === "this config") : [];
}

/** True if the GPU's memory is the limit. */
function usesGpu(config: TrainConfig): boolean {
  if (config.trainer.device === "cpu") return false;
  try {
    return inspectCuda().every(({ name, problem }) => problem === null || name === "kernels");
  } catch {
    // The libraries do not load, which loading the model reports.
    return false;
  }
}

/** Compares conversations' lengths with the models' trained context. If all is well, only the policy gets a line. */
async function checkContexts(config: TrainConfig, folder: string): Promise<Check[]> {
  const uses = await listContexts(config, folder);
  const warnings = listContextWarnings(uses);
  const checks = warnings.map(({ found, remedy, key }) => bad("warning", "context", found, remedy, key));
  const [policy] = uses;
  const isWell = policy && !warnings.some(({ found }) => found === describeContext(policy));
  return isWell ? [ok("context", describeContext(policy)), ...checks] : checks;
}

/** The need of the policy's projector, 0 bytes while its file is missing; null: the policy reads only text. */
async function measureProjector({ actor_rollout_ref }: TrainConfig, folder: string): Promise<ProjectorNeed | null> {
  const { mmproj } = actor_rollout_ref.model;
  if (mmproj === null) return null;
  const path = resolvePath(folder, mmproj);
  try {
    const settings = { ...readHubSettings(), offline: true };
    const file = isAddress(path) ? await resolveProjector(path, { settings }) : path;
    const { size } = await stat(file);
    return { bytes: size, tower: await readGguf(file).then(readTowerShape, () => null) };
  } catch {
    // Loading it reports the reason.
    return { bytes: 0, tower: null };
  }
}

/** The models that teach, without those whose files are not here yet, or cannot be read: loading them says why. */
async function readTeachers({ distillation, actor_rollout_ref }: TrainConfig, folder: string): Promise<OtherModel[]> {
  if (!distillation.enabled) return [];
  const found = await Promise.all(
    Object.entries(distillation.teacher_models).map(async ([name, { model_path, lora_adapter_path }]) => {
      // The policy's own model needs no memory of its own.
      if (model_path === null && lora_adapter_path === null) return [];
      try {
        const file = await findModelFile(resolvePath(folder, model_path ?? actor_rollout_ref.model.path));
        if (file === null) return [];
        const key = `distillation.teacher_models.${name}.model_path`;
        return [{ name, key, shape: readModelShape(await readGguf(file)) }];
      } catch {
        return [];
      }
    }),
  );
  return found.flat();
}

/** null without the addon, which another check reports. */
function listTrainable(): string[] | null {
  try {
    return listTrainableArchitectures();
  } catch {
    return null;
  }
}

function checkModel(path: string, model: ModelShape, config: TrainConfig): Check {
  const { architecture, layers, embedding, vocabulary } = model;
  const found = `${path}: ${architecture}, ${layers} layers of ${embedding}, vocabulary ${vocabulary}, ${formatBytes(model.fileBytes)}`;
  const trainable = listTrainable();
  if (trainable && !trainable.includes(architecture))
    return bad("problem", "model", found, `choose a model of one of these architectures: ${trainable.join(", ")}`);
  if (!usesLora(config) && model.fileBytes < 4 * model.parameters * 0.99)
    return bad(
      "problem",
      "model",
      `${found}; full training needs F32 weights`,
      "set actor_rollout_ref.model.lora_rank above 0, or use an F32 GGUF",
    );
  return ok("model", found);
}

function checkFit({ items, needed, available, fits }: MemoryNeed): Check {
  const found = `about ${formatBytes(needed)} of ${formatBytes(available)}`;
  const largest = items.find((item) => item.key);
  const remedy = `the largest part is ${largest?.name} (${formatBytes(largest?.bytes ?? 0)}): lower ${largest?.key}`;
  if (!fits) return bad("problem", "this config", `does not fit: ${found}`, remedy);
  return needed > 0.85 * available
    ? bad("warning", "this config", `fits barely: ${found}`, remedy)
    : ok("this config", `fits: ${found}`);
}
