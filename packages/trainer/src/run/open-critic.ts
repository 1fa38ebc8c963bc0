import { loadValueModel } from "@cria/engine";
import { resolvePath } from "../config/paths.js";
import { listTargets } from "../config/sections/target-modules.js";
import type { TrainConfig } from "../config/train-config.js";
import { usesLora } from "../policy/load-configured-model.js";
import type { Registries } from "../task/registries.js";
import type { Critic } from "./session-type.js";

/**
 * The critic that the config's advantage estimator needs, or null. It trains as the actor does, LoRA or full, from the same
 * file unless the config says otherwise.
 * @throws EngineError when its model cannot be loaded.
 */
export async function openCritic(
  config: TrainConfig,
  folder: string,
  { advantageEstimators, aggregations }: Pick<Registries, "advantageEstimators" | "aggregations">,
): Promise<Critic | null> {
  if (!advantageEstimators.get(config.algorithm.adv_estimator).needs?.includes("values")) return null;
  const { critic, trainer } = config;
  const { model: actor, actor: updates } = config.actor_rollout_ref;
  const isLora = critic.model.lora_rank === null ? usesLora(config) : critic.model.lora_rank > 0;
  const engine = await loadValueModel({
    path: resolvePath(folder, critic.model.path ?? actor.path),
    device: trainer.device,
    threads: trainer.threads ?? undefined,
    trainable: isLora ? "lora" : "full",
    lora: isLora
      ? {
          // What an actor that starts from an adapter's file does not say is as in any new adapter.
          rank: critic.model.lora_rank ?? (actor.lora_rank || undefined),
          alpha: critic.model.lora_alpha ?? actor.lora_alpha ?? undefined,
          targets: listTargets(critic.model.target_modules ?? actor.target_modules),
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
    lossAggMode: aggregations.get(critic.loss_agg_mode),
    microBatchTokens: critic.ppo_max_token_len ?? undefined,
    warmup: trainer.critic_warmup,
  };
}
