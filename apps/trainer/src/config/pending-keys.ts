import { ConfigError } from "@cria/core";
import { removeKey } from "./ignored-keys.js";

/** Whatever it says, nothing reads it while the switch beside it has its only accepted value. */
const any = Symbol("any value");

/**
 * Keys of features that do not exist yet. A value that asks for what happens anyway is accepted, so that configs of other
 * frameworks work as they are; any other value is an error, for it must not be ignored silently.
 */
const pending: Record<string, readonly unknown[] | typeof any> = {
  "algorithm.use_pf_ppo": [false],
  "algorithm.pf_ppo": any,
  "data.sampler.class_path": [null],
  "data.sampler": any,
  "data.datagen.path": [null],
  "data.datagen": any,
  "data.validation_shuffle": [false],
  "actor_rollout_ref.model.external_lib": [null],
  "actor_rollout_ref.model.exclude_modules": [null],
  "actor_rollout_ref.actor.optim.optimizer": ["AdamW"],
  "trainer.del_local_ckpt_after_load": [false],
  "actor_rollout_ref.rollout.calculate_log_probs": [true],
  "actor_rollout_ref.rollout.do_sample": [true],
  "actor_rollout_ref.rollout.ignore_eos": [false],
  "reward_model.sandbox_fusion.url": [null],
  "reward_model.sandbox_fusion": any,
  "trainer.max_critic_ckpt_to_keep": any,
  "trainer.default_hdfs_dir": [null],
};

export function listPendingKeys(): string[] {
  return Object.keys(pending);
}

/** Removes such keys from a raw config. @throws ConfigError for a value that asks for what does not exist yet. */
export function dropPendingKeys(raw: Record<string, unknown>, file: string): void {
  for (const [path, accepted] of Object.entries(pending)) {
    const { found, value } = removeKey(raw, path);
    if (!found || accepted === any || accepted.includes(value)) continue;
    throw new ConfigError("is not supported yet", {
      code: "config/not-supported",
      subject: `${file}: ${path}`,
      expected: accepted.map((entry) => JSON.stringify(entry)).join(" or "),
      received: JSON.stringify(value),
      remedy: "remove the key, or set it to the expected value",
    });
  }
}
