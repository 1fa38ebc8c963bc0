/** A default that differs from verl's. */
export interface VerlDefault {
  key: string;
  verl: unknown;
  why: string;
  /** True if converting a config of verl writes the key out, because training depends on it. */
  adopts: boolean;
}

const actor = "actor_rollout_ref.actor";
const rollout = "actor_rollout_ref.rollout";

const asActor = "null: as the actor's";
const smaller = "sized for one machine: a step should take a minute, not an hour";
const byMemory = "chosen by model and memory; the result does not depend on it";

const table: [key: string, verl: unknown, adopts: boolean, why: string][] = [
  ["actor_rollout_ref.model.lora_alpha", 16, false, "null is 16, or that of lora_adapter_path"],
  [`${actor}.optim.lr`, 1e-6, true, "that of an adapter; full training above 1e-5 is warned of"],
  [`${actor}.optim.weight_decay`, 0.01, true, "none unless asked for; where set, it leaves norms and biases alone"],
  [`${actor}.ppo_mini_batch_size`, 256, true, smaller],
  [`${actor}.ppo_max_token_len`, 16384, false, byMemory],
  [`${actor}.shuffle`, false, true, "mini-batches mix prompts in another order in each epoch over a batch"],
  [`${actor}.clip_ratio_low`, 0.2, false, "null is clip_ratio, which then has an effect when it is set alone"],
  [`${actor}.clip_ratio_high`, 0.2, false, "null is clip_ratio, which then has an effect when it is set alone"],
  [`${actor}.policy_loss.ppo_kl_coef`, 0.1, true, "the full weight on the tokens that kl_cov penalises"],
  [`${actor}.tau_neg`, 1.05, true, "both sides alike unless asked for; sapo is meant with 1.05"],
  [`${rollout}.n`, 1, true, "grpo compares samples of a prompt"],
  [`${rollout}.max_num_seqs`, 256, false, "the KV cache is allocated for so many at once; others wait"],
  [`${rollout}.seed`, 42, false, "a seed like any other"],
  [`${rollout}.multi_turn.enable`, false, true, "tools and interactions are what Cria is for"],
  [
    `${rollout}.agent.default_agent_loop`,
    "single_turn_agent",
    false,
    "without tools and interactions it has one turn as well",
  ],
  [`${rollout}.val_kwargs.temperature`, 0, false, "of no effect unless do_sample is true; then 0 would not sample"],
  ["critic.model.path", "~/models/deepseek-llm-7b-chat", false, "null is the actor's model"],
  ["critic.model.lora_rank", 0, false, asActor],
  ["critic.model.lora_alpha", 16, false, asActor],
  ["critic.model.target_modules", "all-linear", false, asActor],
  ["critic.optim.lr", 1e-5, true, "that of an adapter and a new head; full training above 1e-5 is warned of"],
  ["critic.optim.weight_decay", 0.01, true, "as the actor's"],
  ["critic.ppo_mini_batch_size", 256, false, asActor],
  ["critic.ppo_max_token_len", 32768, false, byMemory],
  ["critic.ppo_epochs", 1, false, asActor],
  ["critic.shuffle", false, true, "as the actor's"],
  ["data.val_files", ["~/data/rlhf/gsm8k/test.parquet"], false, "null: no validation"],
  ["data.seed", null, false, "a run without a seed could not be repeated"],
  ["data.train_batch_size", 1024, true, smaller],
  ["algorithm.adv_estimator", "gae", true, "needs no critic: half the memory"],
  ["reward_model.launch_reward_fn_async", false, false, "the result is the same, sooner; verl 0.9 has no such key"],
  ["custom_reward_function.name", "compute_score", false, "the name in TypeScript's spelling"],
  ["trainer.default_local_dir", null, false, "the run folder is <default_local_dir>/<project_name>/<experiment_name>"],
  ["trainer.project_name", "verl_examples", false, "a name"],
  ["trainer.experiment_name", "gsm8k", false, "a name"],
  ["trainer.total_epochs", 30, true, smaller],
  ["trainer.device", "cuda", false, "auto takes a GPU where all that it needs is there"],
  ["trainer.logger", ["console", "wandb"], false, "nothing leaves the machine unless asked to"],
];

export function listVerlDefaults(): VerlDefault[] {
  return table.map(([key, verl, adopts, why]) => ({ key, verl, adopts, why }));
}
