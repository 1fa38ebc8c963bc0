import type { TrainConfig } from "../config/train-config.js";

export type LearningRateOptions = Pick<
  TrainConfig["critic"]["optim"],
  "lr" | "lr_warmup_steps" | "lr_warmup_steps_ratio" | "min_lr_ratio" | "num_cycles"
> & { lr_scheduler_type: "constant" | "cosine" | "cosine_from_start" };

/** Steps over which the learning rate rises: as given, or their share of all (-1), rounded down. */
export function countWarmupSteps(
  { lr_warmup_steps, lr_warmup_steps_ratio }: LearningRateOptions,
  total: number,
): number {
  return lr_warmup_steps >= 0 ? lr_warmup_steps : Math.floor(lr_warmup_steps_ratio * total);
}

/**
 * The learning rate of a step, from 1 to `total`. With w warm-up steps and m = min_lr_ratio:
 *
 *     constant   lr · min(1, step / w)
 *     cosine     lr · (m + (1 - m) step / w)                                          up to step w, then
 *                lr · max(m, (1 + m) / 2 + (1 - m) / 2 · cos(2π · num_cycles · p))     with p = (step - 1 - w) / (total - w)
 *     cosine_from_start
 *                lr · min(1, step / w) · (m + (1 - m) / 2 · (1 + cos(2π · num_cycles · p)))   with p = (step - 1) / total
 *
 * With half a cycle, as by default, the cosine falls from lr to nearly m · lr (Loshchilov & Hutter 2017,
 * arXiv:1608.03983); more cycles rise again.
 */
export function computeLearningRate(options: LearningRateOptions, step: number, total: number): number {
  const { lr, lr_scheduler_type, min_lr_ratio: least, num_cycles } = options;
  const warmup = countWarmupSteps(options, total);
  const risen = Math.min(1, step / Math.max(1, warmup));
  if (lr_scheduler_type === "constant") return lr * risen;
  if (lr_scheduler_type === "cosine_from_start") {
    const wave = Math.cos((Math.PI * 2 * num_cycles * (step - 1)) / total);
    return lr * (risen * (least + (1 - least) * 0.5 * (1 + wave)));
  }
  if (step <= warmup) return lr * (least + (1 - least) * risen);
  const progress = (step - 1 - warmup) / Math.max(1, total - warmup);
  const wave = Math.cos(2 * Math.PI * num_cycles * progress);
  return lr * Math.max(least, (1 + least) / 2 + ((1 - least) / 2) * wave);
}

/** Steps of a run: config.total_training_steps, or as many as the epochs over `rows` rows have. */
export function countSteps({ trainer, data }: Pick<TrainConfig, "trainer" | "data">, rows: number): number {
  const perEpoch = Math.max(1, Math.floor(rows / data.train_batch_size));
  return trainer.total_training_steps ?? perEpoch * trainer.total_epochs;
}
