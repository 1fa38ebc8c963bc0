import { stat } from "node:fs/promises";
import { readGguf } from "@cria/engine";
import { listMissingParts, readTowerShape } from "@cria/engine/internal";
import { isAddress, readHubSettings, resolveProjector } from "@cria/hub/internal";
import { resolvePath } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import { findModelFile } from "../hub/find-model-file.js";
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

/**
 * The memory that a config needs with its models, of which only the headers are read.
 * @param available bytes of memory.
 */
export async function measureNeed(
  config: TrainConfig,
  folder: string,
  model: ModelShape,
  available: number,
): Promise<MemoryNeed> {
  const items = estimateMemory(model, config, {
    projector: await measureProjector(config, folder),
    teachers: await readTeachers(config, folder),
  });
  const needed = items.reduce((sum, item) => sum + item.bytes, 0);
  return { items, needed, available, fits: needed <= available };
}

/** True if the GPU's memory is the limit. */
export function usesGpu(config: TrainConfig): boolean {
  const { device } = config.trainer;
  if (device === "cpu") return false;
  try {
    return listMissingParts(device === "auto" ? "cuda" : device).length === 0;
  } catch {
    // The libraries do not load, which loading the model reports.
    return false;
  }
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
