import { readKey, removeKey, type SetAside, writeKey } from "../raw-config.js";

const actor = "actor_rollout_ref.actor";
const rollout = "actor_rollout_ref.rollout";

/** Other names of keys that mean the same here: those of other versions, and those that speak of GPUs. */
const renamed: Record<string, string> = {
  [`${actor}.ppo_max_token_len_per_gpu`]: `${actor}.ppo_max_token_len`,
  [`${actor}.optim.warmup_style`]: `${actor}.optim.lr_scheduler_type`,
  [`${actor}.optim.clip_grad`]: `${actor}.grad_clip`,
  [`${actor}.policy_loss.tau_pos`]: `${actor}.tau_pos`,
  [`${actor}.policy_loss.tau_neg`]: `${actor}.tau_neg`,
  [`${actor}.use_rollout_log_probs`]: "algorithm.rollout_correction.bypass_mode",
  "critic.ppo_max_token_len_per_gpu": "critic.ppo_max_token_len",
  "critic.optim.warmup_style": "critic.optim.lr_scheduler_type",
  "critic.optim.clip_grad": "critic.grad_clip",
  "data.tool_config_path": `${rollout}.multi_turn.tool_config_path`,
  // As its first multi-turn trainer had them.
  "data.filter_prompts": "data.filter_overlong_prompts",
  [`${rollout}.tool_kwargs.tools_config_file`]: `${rollout}.multi_turn.tool_config_path`,
  [`${rollout}.interaction_config_file`]: `${rollout}.multi_turn.interaction_config_path`,
  [`${rollout}.multi_turn.max_turns`]: `${rollout}.multi_turn.max_assistant_turns`,
  "reward_manager.name": "reward_model.reward_manager",
  "reward.reward_manager.name": "reward_model.reward_manager",
  "reward.reward_model.enable": "reward_model.enable",
  "reward.reward_model.model_path": "reward_model.model.path",
  "reward.custom_reward_function.path": "custom_reward_function.path",
  "reward.custom_reward_function.name": "custom_reward_function.name",
  "reward.custom_reward_function.reward_kwargs": "custom_reward_function.reward_kwargs",
  // Of the trainer that teaches by example.
  "model.partial_pretrain": "model.path",
  "data.multiturn.messages_key": "data.messages_key",
  "data.multiturn.tools_key": "data.tools_key",
  "optim.lr_scheduler": "optim.lr_scheduler_type",
  "optim.warmup_steps_ratio": "optim.lr_warmup_steps_ratio",
  "trainer.max_ckpt_to_keep": "trainer.max_actor_ckpt_to_keep",
};
// In verl 0.9 the loss of bypass_mode reads them from here.
for (const key of [
  "bypass_mode",
  "loss_type",
  "rollout_is",
  "rollout_is_threshold",
  "rollout_is_batch_normalize",
].concat(["rollout_rs", "rollout_rs_threshold", "rollout_rs_threshold_lower", "rollout_token_veto_threshold"]))
  renamed[`${actor}.policy_loss.rollout_correction.${key}`] = `algorithm.rollout_correction.${key}`;
for (const section of ["reward_model", "reward"])
  for (const key of ["enable", "len", "penalty_factor", "log"])
    renamed[`${section}.reward_kwargs.overlong_buffer_cfg.${key}`] = `reward_model.overlong_buffer.${key}`;

export function listRenamedKeys(): string[] {
  return Object.keys(renamed);
}

/** The key that another name means; undefined for any other. */
export function findRenamed(key: string): string | undefined {
  return Object.hasOwn(renamed, key) ? renamed[key] : undefined;
}

/** Other names of a key. */
export function listOtherNames(key: string): string[] {
  return listRenamedKeys().filter((name) => renamed[name] === key);
}

/** Renames such keys in a raw config; returns those that have no effect because Cria's own name is given too. */
export function renameKeys(raw: Record<string, unknown>): SetAside[] {
  const overruled: SetAside[] = [];
  for (const [from, to] of Object.entries(renamed)) {
    const { found, value } = removeKey(raw, from);
    if (!found || value === null) continue;
    const present = readKey(raw, to);
    if (present === undefined || present === null) writeKey(raw, to, value);
    else if (JSON.stringify(present) !== JSON.stringify(value))
      overruled.push({ key: from, reason: `${to} says it: ${JSON.stringify(present)}` });
  }
  return overruled;
}
