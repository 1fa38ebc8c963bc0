import type { TrainConfig } from "../config/train-config.js";

/** Steps of a run: config.total_training_steps, or as many as the epochs over `rows` rows have. */
export function countSteps({ trainer, data }: Pick<TrainConfig, "trainer" | "data">, rows: number): number {
  const perEpoch = Math.max(1, Math.floor(rows / data.train_batch_size));
  return trainer.total_training_steps ?? perEpoch * trainer.total_epochs;
}
