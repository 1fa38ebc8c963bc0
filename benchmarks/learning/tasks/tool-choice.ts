import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { cached } from "../../cache.js";
import { findRealModel, writeRealModel } from "../../real-model.js";
import { THREADS } from "../../settings.js";
import {
  demonstrateToolChoice,
  toolChoiceFolder as example,
  prepareToolChoice,
  teachToolChoice,
  toolChoiceByGrpo,
} from "../../tool-choice.js";
import { taskFromConfig } from "./from-config.js";
import { AT_ONCE } from "./learning-task.js";

/**
 * SmolLM2-135M-Instruct after 50 steps of demonstrations at half of the example's rate, which leave most of the
 * rows to learn: which tool, if any, and with which arguments.
 */
export const toolChoice = taskFromConfig({
  name: "tool choice with a published model",
  config: join(example, "config.yaml"),
  settings: [
    ...toolChoiceByGrpo,
    // Counts success alone: the other reward of the example knows parts of it.
    ...["custom_reward_function.name=success", "actor_rollout_ref.actor.optim.lr=5e-4"],
    ...["data.train_batch_size=4", "actor_rollout_ref.actor.ppo_mini_batch_size=4", "data.val_max_samples=64"],
  ],
  threads: Math.max(1, Math.floor(THREADS / AT_ONCE)),
  tokens: 30_000,
  steps: 150,
  every: 5000,
  teacher: {
    // Demonstrations seen once each: four times as many as the policy's.
    write: async (adapter) => {
      const taught = await cached("tool-choice-teacher-2", async (output) => {
        mkdirSync(output, { recursive: true });
        await teachToolChoice(join(output, "sft.gguf"), 1920, ["trainer.total_training_steps=120"]);
      });
      copyFileSync(join(taught, "sft.gguf"), adapter);
    },
  },
  methods: [
    "a fifth of the rate",
    "16 examples beside the rewards (0.1)",
    "teacher alone (forward KL, 32 tokens)",
    "teacher alone (k1 as advantage)",
    "teacher alone (forward KL, 32 tokens), one answer of 8 prompts",
  ],
  findMissing: async () => (await findRealModel()).missingModel,
  examples: (count) => demonstrateToolChoice("shown", count),
  prepare: async () => {
    const folder = await prepareToolChoice();
    return [
      `actor_rollout_ref.model.path=${await writeRealModel("Q8_0")}`,
      `actor_rollout_ref.model.lora_adapter_path=${join(folder, "sft.gguf")}`,
      `data.train_files=${join(folder, "train.jsonl")}`,
      `data.val_files=${join(folder, "val.jsonl")}`,
    ];
  },
});
