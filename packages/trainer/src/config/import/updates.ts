import { usesLora } from "../derived-values.js";
import {
  type CriticUpdateSettings,
  criticUpdateOptions,
  type UpdateSettings,
  updateOptions,
} from "../options/updates.js";
import type { TargetModules } from "../sections/target-modules.js";
import type { TrainConfig } from "../train-config.js";
import { trainKeys } from "./config-keys.js";

/** A critic and its updates. */
export interface CriticSettings
  extends CriticUpdateSettings,
    Pick<UpdateSettings, "miniBatchSize" | "microBatchTokens" | "epochs"> {
  path: string;
  /** Null: all weights are trained. */
  lora: { rank?: number; alpha?: number; targets: TargetModules } | null;
  lossAggMode: string;
  /** Number of steps before the actor's first update, in which only the critic is trained. */
  warmup: number;
}

export function importUpdates(config: TrainConfig): UpdateSettings {
  return trainKeys.read(config, updateOptions);
}

/**
 * Reads the critic from a config: it is loaded from the actor's file and has the actor's settings, unless the config
 * says otherwise.
 */
export function importCritic(config: TrainConfig): CriticSettings {
  const { critic, trainer } = config;
  const { model: actor, actor: updates } = config.actor_rollout_ref;
  const isLora = critic.model.lora_rank === null ? usesLora(config) : critic.model.lora_rank > 0;
  return {
    ...trainKeys.read(config, criticUpdateOptions),
    path: critic.model.path ?? actor.path,
    lora: isLora
      ? {
          // Fields missing from the actor's adapter file get the defaults of a new adapter.
          rank: critic.model.lora_rank ?? (actor.lora_rank || undefined),
          alpha: critic.model.lora_alpha ?? actor.lora_alpha ?? undefined,
          targets: critic.model.target_modules ?? actor.target_modules,
        }
      : null,
    miniBatchSize: critic.ppo_mini_batch_size ?? updates.ppo_mini_batch_size,
    microBatchTokens: critic.ppo_max_token_len,
    epochs: critic.ppo_epochs ?? updates.ppo_epochs,
    lossAggMode: critic.loss_agg_mode,
    warmup: trainer.critic_warmup,
  };
}
