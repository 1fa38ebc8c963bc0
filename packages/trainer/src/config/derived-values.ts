// Values that follow from several keys of a config.
import type { TrainConfig } from "./train-config.js";

/** Maximum number of tokens of a conversation. */
export function readContextSize({ actor_rollout_ref: { rollout } }: TrainConfig): number {
  return rollout.max_model_len ?? rollout.prompt_length + rollout.response_length;
}

/** True if a LoRA adapter is trained, rather than all weights. */
export function usesLora({ actor_rollout_ref: { model } }: TrainConfig): boolean {
  return model.lora_rank > 0 || model.lora_adapter_path !== null;
}

/** True if only a teacher's term is trained on: what rewards say, and whether they differ, teaches nothing. */
export function isTaughtAlone({ distillation }: Pick<TrainConfig, "distillation">): boolean {
  return distillation.enabled && !distillation.distillation_loss.use_task_rewards;
}

/** Number of samples per prompt in training. */
export function countSamples({ n, multi_turn }: TrainConfig["actor_rollout_ref"]["rollout"]): number {
  return (multi_turn.enable ? multi_turn.num_repeat_rollouts : null) ?? n;
}

/** Number of updates between the policy that samples a step and the one that trains on it; 0: none. */
export function readLag({ trainer }: Pick<TrainConfig, "trainer">): number {
  const { trainer_mode: mode, colocate_async, separate_async } = trainer.v1;
  if (mode === "sync") return 0;
  return (mode === "colocate_async" ? colocate_async : separate_async).num_warmup_batches;
}
