import { isAbsolute, relative, resolve, sep } from "node:path";
import type { TrainConfig } from "@cria/trainer";
import { liesIn } from "./named-files.js";

/** Keys with paths of files that workers need, as paths through a config. */
const PORTABLE_KEYS = [
  "actor_rollout_ref.model.lora_adapter_path",
  "actor_rollout_ref.rollout.multi_turn.tool_config_path",
  "actor_rollout_ref.rollout.multi_turn.interaction_config_path",
  "actor_rollout_ref.rollout.multi_turn.format",
  "actor_rollout_ref.rollout.agent.agent_loop_config_path",
  "actor_rollout_ref.actor.policy_loss.loss_mode",
  "actor_rollout_ref.actor.loss_agg_mode",
  "actor_rollout_ref.actor.kl_loss_type",
];

/**
 * A config whose paths hold on other machines: absolute paths into the config's folder become relative to it.
 * @param folder of the config.
 */
export function toPortableConfig(config: TrainConfig, folder: string): TrainConfig {
  const portable = structuredClone(config);
  const root = resolve(folder);
  for (const key of PORTABLE_KEYS) {
    const way = key.split(".");
    const name = way.pop()!;
    const holder = way.reduce<unknown>((node, part) => (node as Record<string, unknown>)[part], portable);
    const section = holder as Record<string, unknown>;
    section[name] = toRelative(section[name], root);
  }
  return portable;
}

function toRelative(value: unknown, root: string): unknown {
  if (typeof value !== "string" || !isAbsolute(value) || !liesIn(root, value)) return value;
  return `./${relative(root, value).split(sep).join("/")}`;
}
