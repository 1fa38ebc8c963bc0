import type { Settings } from "../config/import/settings.js";
import type { CriticUpdateSettings } from "../config/options/updates.js";

/** A learning rate and its schedule; `cria sft` has one additional schedule. */
export type LearningRateOptions = Pick<
  CriticUpdateSettings,
  "learningRate" | "warmupSteps" | "warmupStepsRatio" | "minLrRatio" | "numCycles"
> & { schedule: CriticUpdateSettings["schedule"] | "cosine_from_start" };

/** Number of warm-up steps: as given, or, if that is -1, their share of all steps, rounded down. */
export function countWarmupSteps({ warmupSteps, warmupStepsRatio }: LearningRateOptions, total: number): number {
  return warmupSteps >= 0 ? warmupSteps : Math.floor(warmupStepsRatio * total);
}

/**
 * Computes the learning rate of a step, from 1 to `total`. With w warm-up steps and m = minLrRatio:
 *
 *     constant   lr · min(1, step / w)
 *     cosine     lr · (m + (1 - m) step / w)                                        up to step w, then
 *                lr · max(m, (1 + m) / 2 + (1 - m) / 2 · cos(2π · numCycles · p))
 *                with p = (step - 1 - w) / (total - w)
 *     cosine_from_start
 *                lr · min(1, step / w) · (m + (1 - m) / 2 · (1 + cos(2π · numCycles · p)))
 *                with p = (step - 1) / total
 *
 * With half a cycle, the default, the cosine falls from lr to nearly m · lr (Loshchilov & Hutter 2017,
 * arXiv:1608.03983); with more cycles it rises again.
 */
export function computeLearningRate(options: LearningRateOptions, step: number, total: number): number {
  const { learningRate: lr, schedule, minLrRatio: least, numCycles } = options;
  const warmup = countWarmupSteps(options, total);
  const risen = Math.min(1, step / Math.max(1, warmup));
  if (schedule === "constant") return lr * risen;
  if (schedule === "cosine_from_start") {
    const wave = Math.cos((Math.PI * 2 * numCycles * (step - 1)) / total);
    return lr * (risen * (least + (1 - least) * 0.5 * (1 + wave)));
  }
  if (step <= warmup) return lr * (least + (1 - least) * risen);
  const progress = (step - 1 - warmup) / Math.max(1, total - warmup);
  const wave = Math.cos(2 * Math.PI * numCycles * progress);
  return lr * Math.max(least, (1 + least) / 2 + ((1 - least) / 2) * wave);
}

/** Number of steps of a run: as given, else all epochs over `rows` rows. */
export function countSteps({ steps, epochs, data }: Pick<Settings, "steps" | "epochs" | "data">, rows: number): number {
  const perEpoch = Math.max(1, Math.floor(rows / data.batchSize));
  return steps ?? perEpoch * epochs;
}
