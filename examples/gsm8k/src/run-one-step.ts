import { join } from "node:path";
import { loadConfig, openSession, runTrainingStep, type StepMetrics, trainConfigSchema } from "cria";
import { convertFolder } from "./convert.js";

export interface OneStepOptions {
  /** Folder with GSM8K's train.jsonl and test.jsonl. */
  data: string;
  /** Any GGUF with a chat template. */
  model: string;
  /** Where converted rows go. */
  work: string;
  /** Further key=value overrides of config.yaml. */
  overrides?: string[];
}

/** Converts the data, rolls out a few conversations with the model, and takes one training step. */
export async function runOneStep(options: OneStepOptions): Promise<StepMetrics> {
  await convertFolder(options.data, options.work);
  const { values, folder } = loadConfig(trainConfigSchema, join(import.meta.dirname, "..", "config.yaml"), [
    `actor_rollout_ref.model.path=${options.model}`,
    `data.train_files=${join(options.work, "train.jsonl")}`,
    `data.val_files=${join(options.work, "test.jsonl")}`,
    ...(options.overrides ?? []),
  ]);
  const session = await openSession(values, folder);
  try {
    const rows = session.trainRows.slice(0, values.data.train_batch_size);
    return (await runTrainingStep(session, rows, 1, 0)).metrics;
  } finally {
    await session.dispose();
  }
}
