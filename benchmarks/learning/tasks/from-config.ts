import { dirname, join } from "node:path";
import { openTraining, RunFolder, runTraining } from "cria";
import { loadConfig, trainConfigSchema } from "cria/config";
import { THREADS } from "../../settings.js";
import type { LearningTask, LearnOptions } from "./learning-task.js";
import { LearningRecord } from "./record-learning.js";

/** Small steps: a large one solves an easy task at once, and nothing could be told apart. */
const small = [
  "data.train_batch_size=2",
  "actor_rollout_ref.actor.ppo_mini_batch_size=2",
  "actor_rollout_ref.rollout.n=4",
  "actor_rollout_ref.actor.optim.lr_scheduler_type=constant",
];

export interface ConfigTask extends Pick<LearningTask, "name" | "steps" | "teacherSteps"> {
  /** The path of its config. */
  config: string;
  prepare?: LearningTask["prepare"];
}

let runs = 0;

/** A task that a config describes; held-out rows are answered greedily. */
export function taskFromConfig({ config, prepare = async () => [], ...rest }: ConfigTask): LearningTask {
  return { ...rest, prepare, learn: (options) => learn(config, options) };
}

async function learn(config: string, { folder, seed, steps, overrides, every, adapter }: LearnOptions) {
  const record = new LearningRecord();
  const { values } = loadConfig(trainConfigSchema, config, [
    `trainer.threads=${THREADS}`,
    `trainer.total_training_steps=${steps}`,
    `trainer.test_freq=${every}`,
    "trainer.save_minutes=0",
    "trainer.logger=[]",
    "data.val_max_samples=64",
    `data.seed=${seed}`,
    `actor_rollout_ref.rollout.seed=${seed}`,
    ...small,
    ...overrides,
  ]);
  const training = await openTraining(values, dirname(config));
  try {
    await runTraining(training, {
      folder: await RunFolder.create(join(folder, `run-${runs++}`)),
      configFolder: dirname(config),
      report: record.report,
    });
    if (adapter !== undefined) await training.policy.save(adapter);
  } finally {
    await training.dispose();
  }
  return record.learned;
}
