import { loadValueModel } from "@cria/engine";
import { resolvePath } from "../config/load-config.js";
import type { TrainConfig } from "../config/train-config.js";
import type { Critic } from "./critic.js";

/** Estimators that compute advantages from values. */
const needsValues = new Set(["gae"]);

/**
 * The critic that the config's advantage estimator needs, or null. It trains as the actor does, LoRA or full, from the same
 * file unless the config says otherwise.
 * @throws EngineError when its model cannot be loaded.
 */
export async function openCritic(config: TrainConfig, folder: string): Promise<Critic | null> {
  if (!needsValues.has(config.algorithm.adv_estimator)) return null;
  const { critic, trainer } = config;
  const { model: actor, actor: updates } = config.actor_rollout_ref;
  const rank = critic.model.lora_rank ?? actor.lora_rank;
  const targets = critic.model.target_modules ?? actor.target_modules;
  const engine = await loadValueModel({
    path: resolvePath(folder, critic.model.path ?? actor.path),
    device: trainer.device,
    threads: trainer.threads ?? undefined,
    trainable: rank > 0 ? "lora" : "full",
    lora:
      rank > 0
        ? {
            rank,
            alpha: critic.model.lora_alpha ?? actor.lora_alpha,
            targets: targets === "all-linear" ? undefined : targets,
          }
        : null,
    seed: (config.actor_rollout_ref.rollout.seed + 1) >>> 0,
  });
  return {
    engine,
    optimizer: {
      betas: critic.optim.betas,
      weightDecay: critic.optim.weight_decay,
      maxGradNorm: critic.grad_clip,
    },
    ppo_mini_batch_size: critic.ppo_mini_batch_size ?? updates.ppo_mini_batch_size,
    ppo_epochs: critic.ppo_epochs ?? updates.ppo_epochs,
    shuffle: critic.shuffle,
    cliprangeValue: critic.cliprange_value,
    lossAggMode: critic.loss_agg_mode,
    microBatchTokens: critic.ppo_max_token_len ?? undefined,
    warmup: trainer.critic_warmup,
  };
}
