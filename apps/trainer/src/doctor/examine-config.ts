import { stat } from "node:fs/promises";
import type { HubError } from "@cria/core";
import { inspectCuda, readGguf } from "@cria/engine";
import { isAddress, readHubSettings, resolveModel, resolveProjector } from "@cria/hub";
import { listWarnings, readContextSize, resolvePath, type TrainConfig, usesLora } from "@cria/trainer";
import { formatBytes } from "../terminal/format-bytes.js";
import { readAvailableMemory } from "./available-memory.js";
import { bad, type Check, ok } from "./check.js";
import { estimateMemory, type MemoryItem, type ModelShape, readModelShape } from "./estimate-memory.js";

/** Architectures that can be trained. */
export const TRAINABLE: readonly string[] = ["llama", "qwen2", "qwen3", "qwen2vl", "qwen3vl"];

export interface MemoryNeed {
  items: MemoryItem[];
  /** Bytes, as `available`. */
  needed: number;
  available: number;
  fits: boolean;
}

export interface ExaminedConfig {
  /** Of the config's own values, of its models and of the memory that they take. */
  checks: Check[];
  /** null when the file cannot be read. */
  model: ModelShape | null;
  memory: MemoryNeed | null;
}

/**
 * What a config asks of its models and of this machine, before anything is loaded: of models the header alone is read.
 * @param available bytes of memory.
 */
export async function examineConfig(config: TrainConfig, folder: string, available: number): Promise<ExaminedConfig> {
  const checks = listWarnings(config).map(({ key, found, remedy }) =>
    bad("warning", "learning rate", found, `${key}: ${remedy}`, key),
  );
  let path = resolvePath(folder, config.actor_rollout_ref.model.path);
  let model: ModelShape;
  try {
    const file = await findFile(path);
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
  checks.push(checkModel(path, model, config), ...(await checkContexts(config, folder, model)));
  const items = estimateMemory(model, config, await measureProjector(config, folder));
  const needed = items.reduce((sum, item) => sum + item.bytes, 0);
  const memory = { items, needed, available, fits: needed <= available };
  checks.push(checkFit(memory));
  return { checks, model, memory };
}

/**
 * What a training should be warned of before it loads its model: what it would do to the model, lengths beyond what a model
 * has learned, memory that will not do. What makes loading fail is left to it.
 */
export async function listTrainWarnings(config: TrainConfig, folder: string): Promise<Check[]> {
  const { checks, memory } = await examineConfig(config, folder, readAvailableMemory());
  return checks.filter(({ name, verdict }) => {
    if (name === "this config") return memory !== null && !memory.fits && !usesGpu(config);
    return verdict === "warning" && (name === "learning rate" || name === "context");
  });
}

/** Whether the memory that counts is a GPU's. */
function usesGpu(config: TrainConfig): boolean {
  if (config.trainer.device === "cpu") return false;
  try {
    return inspectCuda().every(({ name, problem }) => problem === null || name === "kernels");
  } catch {
    // The libraries do not load, which loading the model tells.
    return false;
  }
}

/** Conversations longer than a model was trained with: what it writes there is hardly language. */
async function checkContexts(config: TrainConfig, folder: string, policy: ModelShape): Promise<Check[]> {
  const { actor_rollout_ref, algorithm, critic, data, reward_model } = config;
  const { rollout } = actor_rollout_ref;
  const length = readContextSize(config);
  const parts =
    rollout.max_model_len === null
      ? `prompt_length ${rollout.prompt_length} + response_length ${rollout.response_length}`
      : `max_model_len ${length}; prompts of ${data.max_prompt_length}, responses of ${Math.min(rollout.response_length, data.max_response_length)}`;
  const key = `actor_rollout_ref.rollout.${rollout.max_model_len === null ? "response_length" : "max_model_len"}`;
  const checks = [checkContext("the model", policy, length, parts, key)];
  if (algorithm.adv_estimator === "gae" && critic.model.path !== null) {
    const shape = await tryReadShape(folder, critic.model.path);
    if (shape) checks.push(checkContext("the critic", shape, length, parts, key));
  }
  for (const [i, { path, max_model_len }] of (reward_model.enable ? reward_model.model : []).entries()) {
    const shape = path === null ? null : await tryReadShape(folder, path);
    const judgeKey = `reward_model.model[${i}].max_model_len`;
    if (shape) checks.push(checkContext(`reward model ${i}`, shape, max_model_len, "max_model_len", judgeKey));
  }
  // Where all is well only the policy is worth a line.
  return checks.filter(({ verdict }, i) => i === 0 || verdict !== "ok");
}

function checkContext(who: string, { contextLength }: ModelShape, length: number, parts: string, key: string): Check {
  const found = `conversations of up to ${length} tokens (${parts}), and ${who} was trained with ${contextLength}`;
  if (contextLength === 0 || length <= contextLength) return ok("context", found);
  return bad("warning", "context", found, `lower ${key}, so that they are ${contextLength} at most`, key);
}

/** null when it cannot be read, which loading it tells. */
async function tryReadShape(folder: string, path: string): Promise<ModelShape | null> {
  try {
    const file = await findFile(resolvePath(folder, path));
    return file === null ? null : readModelShape(await readGguf(file));
  } catch {
    return null;
  }
}

/** Bytes of the policy's projector, 0 where it is not there yet; null: the policy reads text alone. */
async function measureProjector({ actor_rollout_ref }: TrainConfig, folder: string): Promise<number | null> {
  const { mmproj } = actor_rollout_ref.model;
  if (mmproj === null) return null;
  const path = resolvePath(folder, mmproj);
  try {
    const settings = { ...readHubSettings(), offline: true };
    return (await stat(isAddress(path) ? await resolveProjector(path, { settings }) : path)).size;
  } catch {
    // Loading it tells why.
    return 0;
  }
}

/** Where a model lies, that of an address in the cache; null: nowhere yet. @throws HubError for what is no address. */
async function findFile(path: string): Promise<string | null> {
  if (!isAddress(path)) return path;
  try {
    return await resolveModel(path, { settings: { ...readHubSettings(), offline: true } });
  } catch (error) {
    if ((error as HubError).code === "hub/offline") return null;
    throw error;
  }
}

function checkModel(path: string, model: ModelShape, config: TrainConfig): Check {
  const { architecture, layers, embedding, vocabulary } = model;
  const found = `${path}: ${architecture}, ${layers} layers of ${embedding}, vocabulary ${vocabulary}, ${formatBytes(model.fileBytes)}`;
  if (!TRAINABLE.includes(architecture))
    return bad("problem", "model", found, `choose a model of one of these architectures: ${TRAINABLE.join(", ")}`);
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
