import type { ConfigError } from "@cria/core";
import type { LoadedConfig } from "./load-config.js";
import { listMissingPaths } from "./paths.js";
import type { TrainConfig } from "./train-config.js";

/** Errors for files that a training needs and that do not exist. `except`: keys that a command does not need. */
export function listMissingTrainPaths(
  loaded: LoadedConfig<TrainConfig>,
  except: readonly string[] = [],
): ConfigError[] {
  return listMissingPaths(loaded, [...except, ...listUnusedKeys(loaded.values)]);
}

/** Checks that every file exists, before anything is loaded. @throws ConfigError for the first missing one. */
export function checkTrainPaths(loaded: LoadedConfig<TrainConfig>, except: readonly string[] = []): void {
  const [first] = listMissingTrainPaths(loaded, except);
  if (first) throw first;
}

/** Keys of other frameworks whose paths are never opened. */
export function listUnusedKeys({
  algorithm,
  actor_rollout_ref,
  data,
  distillation,
  reward_model,
  trainer,
}: TrainConfig): string[] {
  const { multi_turn } = actor_rollout_ref.rollout;
  const section = "actor_rollout_ref.rollout.multi_turn";
  return [
    ...(multi_turn.enable ? [] : [`${section}.tool_config_path`, `${section}.interaction_config_path`]),
    // The rows of a user's dataset class may be anywhere.
    ...(data.custom_cls.path === null ? [] : ["data.train_files", "data.val_files"]),
    ...(trainer.resume_mode === "resume_path" ? [] : ["trainer.resume_from_path"]),
    ...(algorithm.adv_estimator === "gae" ? [] : ["critic.model.path"]),
    ...(distillation.enabled
      ? []
      : ["model_path", "lora_adapter_path"].map((key) => `distillation.teacher_models.*.${key}`)),
    ...(reward_model.enable
      ? []
      : ["path", "head_path", "prompt_template_path"].map((key) => `reward_model.model.*.${key}`)),
  ];
}
