import { isMapping, removeKey } from "./ignored-keys.js";

const actor = "actor_rollout_ref.actor";
const rollout = "actor_rollout_ref.rollout";

/** Other names of keys that mean the same here: those of other versions, and those that speak of GPUs. */
const renamed: Record<string, string> = {
  [`${actor}.ppo_max_token_len_per_gpu`]: `${actor}.ppo_max_token_len`,
  [`${actor}.optim.warmup_style`]: `${actor}.optim.lr_scheduler_type`,
  [`${actor}.optim.clip_grad`]: `${actor}.grad_clip`,
  [`${actor}.policy_loss.tau_pos`]: `${actor}.tau_pos`,
  [`${actor}.policy_loss.tau_neg`]: `${actor}.tau_neg`,
  "critic.ppo_max_token_len_per_gpu": "critic.ppo_max_token_len",
  "critic.optim.warmup_style": "critic.optim.lr_scheduler_type",
  "critic.optim.clip_grad": "critic.grad_clip",
  "data.tool_config_path": `${rollout}.multi_turn.tool_config_path`,
  "reward_manager.name": "reward_model.reward_manager",
  "reward.reward_manager.name": "reward_model.reward_manager",
  "reward.reward_model.enable": "reward_model.enable",
  "reward.reward_model.model_path": "reward_model.model.path",
  "reward.custom_reward_function.path": "custom_reward_function.path",
  "reward.custom_reward_function.name": "custom_reward_function.name",
  "reward.custom_reward_function.reward_kwargs": "custom_reward_function.reward_kwargs",
};
for (const section of ["reward_model", "reward"])
  for (const key of ["enable", "len", "penalty_factor", "log"])
    renamed[`${section}.reward_kwargs.overlong_buffer_cfg.${key}`] = `reward_model.overlong_buffer.${key}`;

export function listRenamedKeys(): string[] {
  return Object.keys(renamed);
}

/** A key that has no effect, and why. */
export interface SetAside {
  key: string;
  reason: string;
}

/** Takes such keys over in a raw config; returns those that Cria's own name, given beside them, overrules. */
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

/** What stands at a dotted key; undefined when nothing does. */
export function readKey(raw: unknown, path: string): unknown {
  let node = raw;
  for (const part of path.split(".")) node = isMapping(node) && Object.hasOwn(node, part) ? node[part] : undefined;
  return node;
}

/** Sets a dotted key, with the sections above it. */
export function writeKey(raw: Record<string, unknown>, path: string, value: unknown): void {
  const parts = path.split(".");
  const last = parts.pop()!;
  let node = raw;
  for (const part of parts) {
    if (!Object.hasOwn(node, part) || !isMapping(node[part])) define(node, part, {});
    node = node[part] as Record<string, unknown>;
  }
  define(node, last, value);
}

/** Plain assignment would reach Object.prototype through a key named __proto__. */
function define(node: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(node, key, { value, writable: true, enumerable: true, configurable: true });
}
