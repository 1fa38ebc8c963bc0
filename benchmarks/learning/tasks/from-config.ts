import { dirname, join } from "node:path";
import { LlamaModel } from "@cria/engine";
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
  /** No result depends on their number; the embedded policy gains nothing by a second one. Default 1. */
  threads?: number;
}

let runs = 0;

/** A task that a config describes; held-out rows are answered greedily. */
export function taskFromConfig({ config, settings = [], threads = 1, ...rest }: ConfigTask): LearningTask {
  return {
    ...rest,
    learn: (given) => learn(config, threads, { ...given, overrides: [...settings, ...given.overrides] }),
  };
}

async function learn(
  config: string,
  threads: number,
  { folder, seed, steps, tokens, overrides, every, adapter }: LearnOptions,
) {
  // The last step is validated anyway.
  const settings = ["trainer.test_freq=-1", "data.val_max_samples=32", ...small];
  const training = await openConfig(config, { seed, steps, threads }, [...settings, ...overrides]);
  try {
    const { engine } = training.policy;
    const countDecoded = () => (engine instanceof LlamaModel ? engine.schedulerStats().decodeTokens : 0);
    const record = new LearningRecord({ every, tokens, countDecoded });
    await runTraining(training, {
      folder: await RunFolder.create(join(folder, `run-${runs++}`)),
      configFolder: dirname(config),
      report: record.report,
      afterStep: async (validate) => void (record.isPointDue && (await validate())),
      isStopping: () => record.isOver,
    });
    if (adapter !== undefined) await training.policy.save(adapter);
    return record.points;
  } finally {
    await training.dispose();
  }
}
