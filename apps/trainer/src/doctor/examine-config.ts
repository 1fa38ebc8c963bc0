import { EngineError } from "@cria/core";
import { readGguf } from "@cria/engine";
import { checkTrainable } from "@cria/engine/internal";
import { readHubSettings } from "@cria/hub/internal";
import type { TrainConfig } from "@cria/trainer";
import {
  describeContext,
  findFittingLag,
  findModelFile,
  listContexts,
  listContextWarnings,
  listFormatWarnings,
  listInert,
  listTargetWarnings,
  listWarnings,
  type MemoryNeed,
  type ModelShape,
  measureNeed,
  readAvailableMemory,
  readContextSize,
  readLag,
  readModelShape,
  resolvePath,
  usesGpu,
  usesLora,
} from "@cria/trainer/internal";
import { formatBytes } from "../terminal/format-bytes.js";
import { bad, type Check, ok } from "./check.js";
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
  const settings = [
    ...listWarnings(config),
    ...(await listTargetWarnings(config, folder)),
    ...(await listFormatWarnings(config, folder)),
    ...listInert(config),
  ];
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
  checks.push(await checkModel(path, model, config), ...(await checkContexts(config, folder)));
  const memory = await measureNeed(config, folder, model, available);
  checks.push(checkFit(memory, config));
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

/** Compares conversations' lengths with the models' trained context. If all is well, only the policy gets a line. */
async function checkContexts(config: TrainConfig, folder: string): Promise<Check[]> {
  const uses = await listContexts(config, folder);
  const warnings = listContextWarnings(uses);
  const checks = warnings.map(({ found, remedy, key }) => bad("warning", "context", found, remedy, key));
  const [policy] = uses;
  const isWell = policy && !warnings.some(({ found }) => found === describeContext(policy));
  return isWell ? [ok("context", describeContext(policy)), ...checks] : checks;
}

/** The error that training of this file would begin with. None without the addon, which another check reports. */
async function findRefusal(path: string, config: TrainConfig): Promise<EngineError | null> {
  try {
    await checkTrainable(path, readContextSize(config));
    return null;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return error.code === "engine/addon-missing" ? null : error;
  }
}

async function checkModel(path: string, model: ModelShape, config: TrainConfig): Promise<Check> {
  const { architecture, layers, embedding, vocabulary } = model;
  const found = `${path}: ${architecture}, ${layers} layers of ${embedding}, vocabulary ${vocabulary}, ${formatBytes(model.fileBytes)}`;
  const refusal = await findRefusal(path, config);
  if (refusal) {
    const { summary, expected, received, remedy } = refusal;
    const values = [expected && `expected: ${expected}`, received && `received: ${received}`].filter(Boolean);
    return bad("problem", "model", [`${found}; ${summary}`, ...values].join(", "), remedy ?? "choose another model");
  }
  if (!usesLora(config) && model.fileBytes < 4 * model.parameters * 0.99)
    return bad(
      "problem",
      "model",
      `${found}; full training needs F32 weights`,
      "set actor_rollout_ref.model.lora_rank above 0, or use an F32 GGUF",
    );
  return ok("model", found);
}

function checkFit(need: MemoryNeed, config: TrainConfig): Check {
  const { items, needed, available, fits } = need;
  const found = `about ${formatBytes(needed)} of ${formatBytes(available)}`;
  const largest = items.find((item) => item.key);
  const remedy = `the largest part is ${largest?.name} (${formatBytes(largest?.bytes ?? 0)}): lower ${largest?.key}`;
  if (!fits) return bad("problem", "this config", `does not fit: ${found}`, remedy + suggestLag(need, config));
  return needed > 0.85 * available
    ? bad("warning", "this config", `fits barely: ${found}`, remedy)
    : ok("this config", `fits: ${found}`);
}

/** The lag that fits, where a lag keeps copies of all weights. */
function suggestLag(need: MemoryNeed, config: TrainConfig): string {
  const lag = readLag(config);
  if (lag === 0 || usesLora(config)) return "";
  const { trainer_mode: mode } = config.trainer.v1;
  return `; the largest lag that fits (trainer.v1.${mode}.num_warmup_batches) is ${findFittingLag(need, lag)}`;
}
