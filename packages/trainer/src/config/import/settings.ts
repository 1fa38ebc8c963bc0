import type { PolicyLossOptions, RolloutCorrectionOptions } from "@cria/algorithms";
import { readLag } from "../derived-values.js";
import type { AlgorithmOptions } from "../options/algorithm.js";
import type { DataOptions } from "../options/data.js";
import type { DistillationOptions } from "../options/distillation.js";
import type { EnvironmentOptions } from "../options/environment.js";
import { type LossWeightOptions, lossWeightOptions } from "../options/loss-weights.js";
import { type RunSettings, runOptions } from "../options/run.js";
import { type AheadSettings, aheadOptions } from "../options/sampling.js";
import type { UpdateSettings } from "../options/updates.js";
import type { TrainConfig } from "../train-config.js";
import { importAlgorithm } from "./algorithm.js";
import { trainKeys } from "./config-keys.js";
import { importCorrection } from "./correction.js";
import { importData } from "./data.js";
import { importDistillation } from "./distillation.js";
import { importEnvironment } from "./environment.js";
import { importLoss } from "./loss.js";
import { importSampling, importValidation, type SamplingSettings } from "./sampling.js";
import { type CriticSettings, importCritic, importUpdates } from "./updates.js";

/**
 * All options of a training, checked and with defaults, as the step reads them. `importSettings` makes them from a
 * config.
 */
export interface Settings extends RunSettings {
  sampling: SamplingSettings;
  /** Sampling for held-out rows. */
  validation: SamplingSettings;
  environment: EnvironmentOptions;
  data: DataOptions;
  loss: PolicyLossOptions;
  /** Weights of single rows in the terms of the loss. */
  lossWeights: LossWeightOptions;
  /** Correction for the difference between the sampler and the training graph. */
  correction: RolloutCorrectionOptions & {
    /** True if the sampler's log-probabilities serve as the old ones: the loss then corrects for the sampler. */
    bypass: boolean;
  };
  algorithm: AlgorithmOptions;
  /** Null: there is no teacher. */
  distillation: DistillationOptions | null;
  updates: UpdateSettings;
  /** Roles with an adapter each; null: one policy plays all roles. */
  roles: readonly string[] | null;
  /** Used if the advantage estimator needs a critic. */
  critic: CriticSettings;
  /** Number of updates between the policy that samples a step and the one that trains on it; 0: none. */
  lag: number;
  /** With a lag: the policy that samples the further turns of conversations which an update finds unfinished. */
  partialRollout: AheadSettings["partialRollout"];
}

/** @throws ConfigError, in the config's names, for conflicts that its schema cannot detect. */
export function importSettings(config: TrainConfig): Settings {
  const { algorithm } = config;
  const lag = readLag(config);
  const samplerDiffers =
    lag > 0 || algorithm.replay.share > 0 || config.actor_rollout_ref.rollout.kv_cache_dtype !== "f32";
  return {
    ...trainKeys.read(config, runOptions),
    sampling: importSampling(config),
    validation: importValidation(config),
    environment: importEnvironment(config),
    data: importData(config),
    loss: importLoss(config),
    lossWeights: trainKeys.read(config, lossWeightOptions),
    correction: {
      ...importCorrection(algorithm, samplerDiffers),
      bypass: algorithm.rollout_correction.bypass_mode,
    },
    algorithm: importAlgorithm(config),
    distillation: importDistillation(config),
    updates: importUpdates(config),
    critic: importCritic(config),
    ...trainKeys.read(config, aheadOptions),
    roles: config.actor_rollout_ref.model.lora_roles,
    lag,
  };
}
