import { ConfigError } from "@cria/core";
import { type FindPlace, namePlace } from "../check-config.js";
import { listLeaves, removeKey, type SetAside } from "../raw-config.js";
import { frozenKeys } from "./vision-keys.js";

/** Any value is accepted, and told: nothing reads the keys while the switch beside them has its only accepted value. */
const unread = (reason: string) => ({ reason });

const rollout = "actor_rollout_ref.rollout";
const actor = "actor_rollout_ref.actor";
const model = "actor_rollout_ref.model";

const noDraft = "layers that predict several tokens are not trained";
const noQat = "training does not imitate a quantised sampler";
const noModule = "a reward function says the reward (custom_reward_function)";
const inTurns = "rollouts and updates take turns: trainer_mode is sync";

/**
 * Keys of features that do not exist yet. A value that asks for what happens anyway is accepted, so that configs of
 * other frameworks work as they are; any other value is an error, because it must not be ignored silently. A section
 * stands after its switch, and each key in it is told of.
 */
const pending: Record<string, readonly unknown[] | { reason: string }> = {
  ...Object.fromEntries(frozenKeys.map((key) => [key, [true, null]])),
  "data.sampler.class_path": [null],
  "data.sampler": unread("no sampler of one's own orders the rows"),
  "data.datagen.path": [null],
  "data.datagen": unread("rows come from files and tasks"),
  "data.function_tool_path": [null],
  "data.validation_shuffle": [false],
  [`${model}.custom_chat_template`]: [null],
  [`${model}.external_lib`]: [null],
  [`${model}.exclude_modules`]: [null],
  [`${model}.lora.rank`]: [0],
  [`${model}.lora.adapter_path`]: [null],
  [`${model}.lora`]: unread(`${model}.lora_rank trains an adapter`),
  [`${model}.mtp.enable`]: [false],
  [`${model}.mtp`]: unread(noDraft),
  // Computed for the estimators that need it, and for no other.
  [`${actor}.calculate_sum_pi_squared`]: [true, false],
  [`${actor}.optim.optimizer`]: ["AdamW"],
  [`${actor}.optim.optimizer_impl`]: ["torch.optim"],
  [`${actor}.optim.override_optimizer_config`]: [null],
  [`${actor}.qat.enable`]: [false],
  [`${actor}.qat`]: unread(noQat),
  [`${actor}.router_replay.mode`]: ["disabled"],
  [`${actor}.router_replay`]: unread("models with experts are not trained here"),
  "critic.loss_scale_factor": [null],
  "critic.model.custom_chat_template": [null],
  "critic.model.exclude_modules": [null],
  "critic.model.external_lib": [null],
  "critic.model.lora.rank": [0],
  "critic.model.lora.adapter_path": [null],
  "critic.model.lora": unread("critic.model.lora_rank trains an adapter"),
  "critic.model.lora_adapter_path": [null],
  "critic.model.mtp.enable": [false],
  "critic.model.mtp": unread(noDraft),
  "critic.optim.optimizer": ["AdamW"],
  "critic.optim.optimizer_impl": ["torch.optim"],
  "critic.optim.override_optimizer_config": [null],
  // They are always kept, which costs nothing where nobody wants them.
  [`${rollout}.calculate_log_probs`]: [true, false],
  [`${rollout}.do_sample`]: [true],
  [`${rollout}.enable_rollout_routing_replay`]: [false],
  [`${rollout}.ignore_eos`]: [false],
  [`${rollout}.mtp`]: unread(noDraft),
  [`${rollout}.multi_turn.function_tool_path`]: [null],
  [`${rollout}.qat.enable`]: [false],
  [`${rollout}.qat`]: unread(noQat),
  [`${rollout}.repetition_penalty`]: [1],
  [`${rollout}.skip_rollout`]: [false],
  "skip.rollout.enable": [false],
  "skip.async_rollout.enable": [false],
  "skip.rollout_tq.enable": [false],
  skip: unread("rollouts are never replayed from a dump"),
  "distillation.enabled": [false],
  distillation: unread("no teacher is asked: distillation.enabled is not true"),
  "reward_manager.source": ["register"],
  "reward_manager.module.path": [null],
  "reward_manager.module": unread(noModule),
  "reward.reward_manager.source": ["register"],
  "reward.reward_manager.module.path": [null],
  "reward.reward_manager.module": unread(noModule),
  "reward_model.reward_loop_source": ["register", null],
  "reward_model.reward_loop_module_path": [null],
  "reward_model.reward_loop_class_name": [null],
  "reward_model.model.external_lib": [null],
  "trainer.v1.trainer_mode": ["sync"],
  "trainer.v1.sampler.custom_sampler.path": [null],
  "trainer.v1.sampler": unread(
    "every step trains on its own rollouts, of the newest weights, in the order of data.shuffle",
  ),
  "trainer.v1.separate_async": unread(inTurns),
  "trainer.v1.colocate_async": unread(inTurns),
  "trainer.v1": unread("there is one trainer"),
  "async_training.staleness_threshold": [0],
  "actor_rollout_ref.ref.model.path": [null],
  "trainer.del_local_ckpt_after_load": [false],
  "trainer.default_hdfs_dir": [null],
};

/** What a reader should know of a key beside the values that it may have. */
const remedies: Record<string, string> = {
  ...Object.fromEntries(frozenKeys.map((key) => [key, "the projector's file (model.mmproj) stays as it is"])),
  "trainer.v1.trainer_mode": "asynchronous trainers come with trainer.mode",
  [`${model}.lora.rank`]: `${model}.lora_rank trains an adapter`,
  [`${model}.lora.adapter_path`]: `${model}.lora_adapter_path starts from an adapter`,
  "critic.model.lora.rank": "critic.model.lora_rank trains an adapter",
  [`${rollout}.repetition_penalty`]:
    "with it the sampler's distribution is not the policy's, and ratios would be wrong",
  "data.function_tool_path": `${rollout}.multi_turn.tool_config_path names tools`,
  [`${rollout}.multi_turn.function_tool_path`]: `${rollout}.multi_turn.tool_config_path names tools`,
  [`${model}.custom_chat_template`]: "the chat template is the GGUF's",
  "data.sampler.class_path": "data.shuffle and data.seed decide the order of rows",
  "trainer.v1.sampler.custom_sampler.path": "data.shuffle and data.seed decide the order of rows",
  "async_training.staleness_threshold": "each step samples with the newest weights: no sample is stale",
  "actor_rollout_ref.ref.model.path":
    "the reference is the policy that training starts from: model.path, with adapters off",
  "distillation.enabled": "rewards by other models: reward_model.model",
};

export function listPendingKeys(): string[] {
  return Object.keys(pending);
}

/** Values that such a key may have; null: any. */
export function listAccepted(key: string): readonly unknown[] | null {
  const accepted = pending[key];
  return isValues(accepted) ? accepted : null;
}

const isValues = (accepted: (typeof pending)[string] | undefined): accepted is readonly unknown[] =>
  Array.isArray(accepted);

/** A key whose value asks for what does not exist yet. */
export interface Refusal {
  key: string;
  received: unknown;
  accepted: readonly unknown[];
  remedy?: string;
}

/** Removes keys with a fixed value from a raw config; returns those whose value asks for what does not exist yet. */
export function removePendingKeys(raw: Record<string, unknown>): Refusal[] {
  const refusals: Refusal[] = [];
  for (const [key, accepted] of Object.entries(pending)) {
    if (!isValues(accepted)) continue;
    const { found, value } = removeKey(raw, key);
    if (found && !accepted.includes(value)) refusals.push({ key, received: value, accepted, remedy: remedies[key] });
  }
  return refusals;
}

/** Removes the sections that nothing reads; returns each key in them that says something. */
export function dropUnreadSections(raw: Record<string, unknown>): SetAside[] {
  return Object.entries(pending).flatMap(([key, accepted]) => {
    if (isValues(accepted)) return [];
    const { found, value } = removeKey(raw, key);
    return found ? listLeaves(value, key).map((leaf) => ({ key: leaf, reason: accepted.reason })) : [];
  });
}

/** @throws ConfigError that names all of them. */
export function refuseKeys(refusals: readonly Refusal[], file: string, findPlace: FindPlace = () => undefined): void {
  const [first] = refusals;
  if (!first) return;
  const list = (refusal: Refusal) => refusal.accepted.map((entry) => JSON.stringify(entry)).join(" or ");
  if (refusals.length === 1)
    throw new ConfigError("is not supported yet", {
      code: "config/not-supported",
      subject: namePlace(first.key, file, findPlace),
      expected: list(first),
      received: JSON.stringify(first.received),
      remedy: ["remove the key, or set it to the expected value", first.remedy].filter(Boolean).join("; "),
    });
  throw new ConfigError(`has ${refusals.length} keys of what is not supported yet`, {
    code: "config/not-supported",
    subject: file,
    expected: refusals.map((refusal) => `\n    ${refusal.key}: ${list(refusal)}`).join(""),
    received: refusals.map(({ key, received }) => `\n    ${key}: ${JSON.stringify(received)}`).join(""),
    remedy: "remove these keys, or set them to the expected values",
  });
}
