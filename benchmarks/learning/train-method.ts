import { dirname, join } from "node:path";
import { openTraining, RunFolder, runTraining } from "cria";
import { loadConfig, trainConfigSchema } from "cria/config";
import { THREADS } from "../settings.js";
import type { LearningTask } from "./tasks/learning-task.js";

export interface MethodOptions {
  task: LearningTask;
  /** Where run folders lie. */
  folder: string;
  seed: number;
  steps: number;
  /** "key.path=value", of the task's config. */
  overrides: readonly string[];
  /** Steps between validations. */
  every: number;
  /** Where the trained adapter is written; left out: nowhere. */
  adapter?: string;
}

export interface Learned {
  /** Share of the held-out rows that are solved, greedily, after so many sampled tokens. */
  points: { tokens: number; success: number }[];
  /** Of the steps, without validations. */
  seconds: number;
}

/** Small steps: a large one solves an easy task at once, and nothing could be told apart. */
const small = [
  "data.train_batch_size=2",
  "actor_rollout_ref.actor.ppo_mini_batch_size=2",
  "actor_rollout_ref.rollout.n=4",
  "actor_rollout_ref.actor.optim.lr_scheduler_type=constant",
];

let runs = 0;

/** A training of a task. */
export async function trainMethod(options: MethodOptions): Promise<Learned> {
  const { task, folder, seed, steps, overrides, every, adapter } = options;
  const points: Learned["points"] = [];
  let tokens = 0;
  let seconds = 0;
  const { values } = loadConfig(trainConfigSchema, task.config, [
    `trainer.threads=${THREADS}`,
    `trainer.total_training_steps=${steps}`,
    `trainer.test_freq=${every}`,
    "trainer.save_minutes=0",
    "trainer.logger=[]",
    "data.val_max_samples=96",
    `data.seed=${seed}`,
    `actor_rollout_ref.rollout.seed=${seed}`,
    ...small,
    ...overrides,
  ]);
  const training = await openTraining(values, dirname(task.config));
  try {
    await runTraining(training, {
      folder: await RunFolder.create(join(folder, `run-${runs++}`)),
      configFolder: dirname(task.config),
      report: (event) => {
        if (event.type === "validated") points.push({ tokens, success: event.success ?? 0 });
        if (event.type !== "step") return;
        tokens += event.metrics["engine/decode_tokens"]!;
        seconds += event.metrics["timing_s/step"]!;
      },
    });
    if (adapter !== undefined) await training.policy.save(adapter);
  } finally {
    await training.dispose();
  }
  return { points, seconds };
}
