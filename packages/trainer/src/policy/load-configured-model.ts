import { type LlamaModel, type LoadModelOptions, loadModel } from "@cria/engine";
import { readContextSize, usesLora } from "../config/derived-values.js";
import { importDevice } from "../config/import/device.js";
import { resolvePath } from "../config/paths.js";
import { listTargets } from "../config/sections/target-modules.js";
import type { TrainConfig } from "../config/train-config.js";
import { describeVision } from "./describe-vision.js";

/** Loads the model to train: with a new adapter, one from a file, or none for full training. @throws EngineError */
export function loadConfiguredModel(
  config: TrainConfig,
  folder: string,
  overrides: Partial<LoadModelOptions> = {},
): Promise<LlamaModel> {
  const { model, rollout } = config.actor_rollout_ref;
  const lora = usesLora(config);
  return loadModel({
    path: resolvePath(folder, model.path),
    ...describeVision(model, folder),
    contextSize: readContextSize(config),
    ...importDevice(config),
    maxSequences: rollout.max_num_seqs,
    kvType: rollout.kv_cache_dtype,
    trainable: lora ? "lora" : "full",
    lora: lora
      ? {
          rank: model.lora_rank || undefined,
          alpha: model.lora_alpha ?? undefined,
          targets: listTargets(model.target_modules),
          path: model.lora_adapter_path ? resolvePath(folder, model.lora_adapter_path) : undefined,
        }
      : null,
    seed: rollout.seed >>> 0,
    deterministic: rollout.deterministic,
    ...overrides,
  });
}
