import { dirname, join } from "node:path";
import { RunFolder, runTraining } from "cria";
import { openConfig } from "../../open-config.js";
import type { LearningTask, LearnOptions } from "./learning-task.js";
import { LearningRecord } from "./record-learning.js";

/** Small steps: a large one solves an easy task at once, and nothing could be told apart. */
const small = [
  "data.train_batch_size=2",
  "actor_rollout_ref.actor.ppo_mini_batch_size=2",
  "actor_rollout_ref.rollout.n=4",
  "actor_rollout_ref.actor.optim.lr_scheduler_type=constant",
];

export interface ConfigTask extends Omit<LearningTask, "learn"> {
  /** The path of its config. */
  config: string;
  /** "key.path=value" of what differs from the config. */
  settings?: readonly string[];
}

let runs = 0;

/** A task that a config describes; held-out rows are answered greedily. */
export function taskFromConfig({ config, settings = [], ...rest }: ConfigTask): LearningTask {
  return {
    ...rest,
    learn: (given) => learn(config, { ...given, overrides: [...settings, ...given.overrides] }),
  };
}

async function learn(config: string, { folder, seed, steps, overrides, every, adapter }: LearnOptions) {
  const record = new LearningRecord();
  const settings = [`trainer.test_freq=${every}`, "data.val_max_samples=64", ...small];
  const training = await openConfig(config, { seed, steps }, [...settings, ...overrides]);
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
