import { join } from "node:path";
import { convertGsm8k, type Gsm8kShape } from "@cria/rollout";
import { openTraining, runTrainingStep, type StepMetrics } from "cria";
import { loadConfig, trainConfigSchema } from "cria/config";

export interface OneStepOptions {
  /** Folder with GSM8K's train.jsonl and test.jsonl. */
  data: string;
  /** Any GGUF with a chat template. */
  model: string;
  /** Folder of Parquet files and the cache of prompt lengths. */
  work: string;
  /** Default: tool. */
  shape?: Gsm8kShape;
  /** Further key=value overrides of the shape's config. */
  overrides?: string[];
}

/** Converts the data, rolls out a few conversations with the model, and takes one training step. */
export async function runOneStep(options: OneStepOptions): Promise<StepMetrics> {
  const { shape = "tool" } = options;
  const { train, test } = await convertGsm8k(options.data, join(options.work, shape), shape);
  const file = shape === "tool" ? "config.yaml" : "config-interaction.yaml";
  const { values, folder } = loadConfig(trainConfigSchema, join(import.meta.dirname, "..", file), [
    `actor_rollout_ref.model.path=${options.model}`,
    `data.train_files=${train.file}`,
    `data.val_files=${test.file}`,
    `data.cache_dir=${join(options.work, "cache")}`,
    ...(options.overrides ?? []),
  ]);
  const training = await openTraining(values, folder);
  try {
    const rows = training.trainRows.slice(0, values.data.train_batch_size);
    return (await runTrainingStep(training, { rows: rows, step: 1, epoch: 0 })).metrics;
  } finally {
    await training.dispose();
  }
}
