import { join } from "node:path";

export interface Method {
  name: string;
  /** Overrides of the config, where the adapter of the teacher is {teacher}, and a file of right examples {examples}. */
  overrides: readonly string[];
  /** Tasks that it is for, by name; left out: all. */
  tasks?: readonly string[];
}

const rewardedTools = join(import.meta.dirname, "tasks", "path-rewarded-tools.yaml");
const loss = "distillation.distillation_loss";
const taught = [
  "distillation.enabled=true",
  "distillation.teacher_models={ trained: { lora_adapter_path: {teacher} } }",
];

const forwardKl = [`${loss}.loss_mode=forward_kl_topk`, `${loss}.topk=32`];
const k1 = [`${loss}.loss_mode=k1`, `${loss}.use_policy_gradient=true`];
const alone = [...taught, `${loss}.use_task_rewards=false`];
/** Turns by their distance from the teacher (SOD). */
const weighed = `${loss}.turn_weights=relative`;

const shown = "data.demonstrations={ files: [{examples}], size: 4 }";
const shownWeight = "actor_rollout_ref.actor.demonstration_coeff";

/** A step's prompts, in one update: thirty-two conversations where each has the four samples that all methods start from. */
const eightPrompts = ["data.train_batch_size=8", "actor_rollout_ref.actor.ppo_mini_batch_size=8"];

export const methods: readonly Method[] = [
  {
    name: "a fifth of the rate",
    overrides: ["actor_rollout_ref.actor.optim.lr=1e-4"],
    tasks: ["tool choice with a published model"],
  },
  { name: "16 examples beside the rewards (0.1)", overrides: [shown, `${shownWeight}=0.1`] },
  { name: "16 examples beside the rewards (1)", overrides: [shown, `${shownWeight}=1`] },
  { name: "teacher beside the rewards (k3)", overrides: taught },
  { name: "teacher alone (k3)", overrides: alone },
  { name: "teacher alone (k1 as advantage)", overrides: [...alone, ...k1] },
  { name: "teacher alone (k1 as advantage), turns weighed (SOD)", overrides: [...alone, ...k1, weighed] },
  { name: "teacher alone (forward KL, 32 tokens)", overrides: [...alone, ...forwardKl] },
  { name: "teacher alone (forward KL, 32 tokens), turns weighed (SOD)", overrides: [...alone, ...forwardKl, weighed] },
  {
    name: "teacher alone (forward KL, 32 tokens), one answer of 8 prompts",
    overrides: [...alone, ...forwardKl, ...eightPrompts, "actor_rollout_ref.rollout.n=1"],
    tasks: ["tool choice with a published model"],
  },
  {
    name: "teacher plays half of the turns at first",
    overrides: [...taught, "distillation.guided={ share: 0.5, steps: 20 }"],
  },
  {
    name: "trees (Tree-GRPO)",
    overrides: ["algorithm.adv_estimator=tree_grpo", "actor_rollout_ref.rollout.tree={ expansions: 1, rounds: 1 }"],
  },
  {
    name: "measured turns (VinePPO)",
    overrides: ["algorithm.adv_estimator=vine", "algorithm.vine={ continuations: 2 }"],
  },
  { name: "GiGPO", overrides: ["algorithm.adv_estimator=gigpo"] },
  {
    name: "a reward for each right call (MT-GRPO)",
    overrides: [
      "algorithm.adv_estimator=mt_grpo",
      `actor_rollout_ref.rollout.multi_turn.tool_config_path=${rewardedTools}`,
    ],
    tasks: ["three calls in a chain"],
  },
  {
    name: "a baseline for each player (RAE)",
    overrides: [
      "algorithm.adv_estimator=rae",
      "actor_rollout_ref.rollout.n=1",
      "data.train_batch_size=32",
      "actor_rollout_ref.actor.ppo_mini_batch_size=32",
    ],
    tasks: ["two players"],
  },
  { name: "tools' answers too (ECHO)", overrides: ["actor_rollout_ref.actor.observation_coeff=0.1"] },
  { name: "MaxRL", overrides: ["algorithm.adv_estimator=max_rl"] },
  { name: "rows by difficulty", overrides: ["data.sampler.class_name=difficulty"] },
  {
    name: "rows by difficulty, more samples for harder ones",
    overrides: ["data.sampler.class_name=difficulty", "data.sampler.sampler_kwargs={ samples: harder }"],
  },
  {
    name: "groups of equal rewards replaced (min_spread 0.1)",
    overrides: ["algorithm.filter_groups={ enable: true, metric: score, min_spread: 0.1, max_num_gen_batches: 10 }"],
  },
  { name: "half of the groups once more", overrides: ["algorithm.replay.share=0.5"] },
  { name: "16 samples of a prompt", overrides: ["actor_rollout_ref.rollout.n=16"] },
  { name: "8 prompts a step", overrides: eightPrompts },
  {
    name: "8 prompts a step, top 0.9 of the variance (RAGEN-2)",
    overrides: [
      ...eightPrompts,
      "algorithm.filter_groups={ enable: true, metric: score, max_num_gen_batches: 1, variance_share: 0.9 }",
    ],
  },
];
