import { advantageEstimators } from "@cria/algorithms";
import { countSamples, isTaughtAlone, usesLora } from "./derived-values.js";
import type { TrainConfig } from "./train-config.js";

/** Warnings about settings that are allowed but probably a mistake. */
export interface ConfigWarning {
  key: string;
  found: string;
  remedy: string;
}

/**
 * Higher learning rates tend to ruin a model within a few steps of full training; verl's defaults are 1e-6 (actor)
 * and 1e-5 (critic).
 */
const HIGHEST_FULL_RATE = 1e-5;

/** Reads only the config; loads nothing. */
export function listWarnings(config: TrainConfig): ConfigWarning[] {
  const { actor_rollout_ref, critic, algorithm } = config;
  const lora = usesLora(config);
  const warnings: ConfigWarning[] = [];
  const warn = (who: string, section: string, lr: number) => {
    if (lr <= HIGHEST_FULL_RATE) return;
    warnings.push({
      key: `${section}.optim.lr`,
      found: `trains all weights of the ${who} (lora_rank 0) at a learning rate of ${lr}`,
      remedy: `set it to 1e-5 or less, 1e-6 for example, or train an adapter: lora_rank 16`,
    });
  };
  if (!lora) warn("policy", "actor_rollout_ref.actor", actor_rollout_ref.actor.optim.lr);
  const criticIsFull = critic.model.lora_rank === null ? !lora : critic.model.lora_rank === 0;
  if (algorithm.adv_estimator === "gae" && criticIsFull) warn("critic", "critic", critic.optim.lr);
  const { multi_turn } = actor_rollout_ref.rollout;
  const { interaction_config_path, interaction_interval, tool_config_path } = multi_turn;
  if (interaction_config_path !== null && tool_config_path === null && interaction_interval > 1) {
    warnings.push({
      key: "actor_rollout_ref.rollout.multi_turn.interaction_interval",
      found: `is ${interaction_interval}, and there are no tools: the model's first answer ends the conversation, and the interaction is never asked`,
      remedy: "set it to 1, or give the model tools (tool_config_path)",
    });
  }
  const { adv_estimator: estimator } = algorithm;
  const comparesGroup =
    !isTaughtAlone(config) &&
    advantageEstimators.names().includes(estimator) &&
    advantageEstimators.get(estimator).comparesGroup;
  if (comparesGroup && countSamples(actor_rollout_ref.rollout) === 1) {
    warnings.push({
      key: "actor_rollout_ref.rollout.n",
      found: `is 1, and ${estimator} compares the conversations of a prompt with each other, of which there is one, unless a row asks for more`,
      remedy: "set it to 8, for example, with fewer prompts a step (data.train_batch_size)",
    });
  }
  const { enable, model } = config.reward_model;
  const ranks = enable ? model.findIndex((entry) => entry.type === "group_rank" && entry.group_output === "ranks") : -1;
  if (ranks >= 0 && config.data.val_files !== null && actor_rollout_ref.rollout.val_kwargs.n === 1) {
    warnings.push({
      key: `reward_model.model[${ranks}].group_output`,
      found: "ranks the conversations of a prompt, of which a validation has one: its rank is always the best",
      remedy: "set it to scores, or actor_rollout_ref.rollout.val_kwargs.n to 2 or more, with do_sample: true",
    });
  }
  return warnings;
}
