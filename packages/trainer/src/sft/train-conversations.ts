import { crossEntropyLoss } from "@cria/algorithms";
import type { LossFunction } from "@cria/core";
import {
  type Checkpoint,
  type CheckpointStore,
  restoreEngines,
  type Unvalidated,
} from "../checkpoints/checkpoint-store.js";
import type { RunFolder } from "../checkpoints/run-folder.js";
import { SavePoints } from "../checkpoints/save-points.js";
import { saveWeights } from "../checkpoints/save-weights.js";
import type { SftConfig } from "../config/sft-config.js";
import type { LivePhase } from "../live/live-state.js";
import { runSteps } from "../run/run-steps.js";
import { computeLearningRate } from "../step/learning-rate.js";
import type { StepMetrics } from "../step-metrics.js";
import { type BatchesState, BucketedBatches } from "./bucketed-batches.js";
import { LossAverage, type LossAverageState } from "./loss-average.js";
import { measureLoss } from "./measure-loss.js";
import type { SftTraining } from "./open-sft.js";
import type { SftExample } from "./read-examples.js";

export interface TrainConversationsOptions {
  signal?: AbortSignal;
  checkpoints: CheckpointStore;
  /** Checkpoint to resume from. */
  resume: Checkpoint | null;
  /** Called after each step; `average` is the moving average of the loss. */
  onStep?: (step: number, metrics: StepMetrics, average: number) => void;
  /** Called before each part of a step. */
  onPhase?: (phase: LivePhase, step: number) => void;
  /** Called while held-out conversations are scored. */
  onValidation?: (done: number, total: number) => void;
  /** Called with every step's metrics, validation included. */
  onMetrics?: (step: number, metrics: StepMetrics) => void;
}

/** A checkpoint's data.json. */
interface ResumedData extends Unvalidated {
  batches: BatchesState;
  average: LossAverageState;
}

/** Steps of a run: trainer.total_training_steps, or as many as its epochs have. */
export function countSftSteps({
  config: { data, trainer },
  examples,
}: Pick<SftTraining, "config" | "examples">): number {
  return trainer.total_training_steps ?? Math.ceil((trainer.total_epochs * examples.length) / data.train_batch_size);
}

/**
 * Trains on the conversations to the end, with the loss on assistant tokens and their end-of-turn tokens. Metrics,
 * weights and state go to the run folder. A resumed run computes the same as an uninterrupted one.
 * @returns the metrics of the steps taken here, and the average of the loss.
 * @throws TrainingInterrupted when the signal aborted; the current update is then finished and saved.
 */
export async function trainConversations(
  training: SftTraining,
  folder: RunFolder,
  options: TrainConversationsOptions,
): Promise<{ history: StepMetrics[]; average: number }> {
  const { config, engine, examples } = training;
  const { data, trainer } = config;
  const { checkpoints, resume, signal } = options;
  const total = countSftSteps(training);
  const batches = new BucketedBatches(
    examples,
    data.train_batch_size,
    trainer.seed,
    engine.info.vocabSize,
    data.group_by_length,
  );
  const average = new LossAverage();
  const resumed = (resume?.data ?? null) as ResumedData | null;
  if (resume && resumed) {
    batches.restore(resumed.batches);
    average.restore(resumed.average);
    await restoreEngines(resume, { actor: engine });
  }
  const update = makeUpdate(training, total);
  const history = await runSteps({
    start: resume?.step ?? 0,
    total,
    signal,
    saves: new SavePoints({
      saveFreq: trainer.save_freq,
      saveMinutes: trainer.save_minutes,
      total,
      checkpoints,
      resume,
      saveWeights: () => saveWeights(engine, folder),
    }),
    mark: (step) => ({ step, batches: batches.save(), average: average.save() }),
    describe: ({ step, ...place }): { engines: Record<string, object>; data: ResumedData; rng: unknown } => ({
      engines: { actor: engine },
      data: place,
      // There is no generator state: the order follows from a hash of the seed and the batch number.
      rng: { seed: trainer.seed, step },
    }),
    take: async (step) => {
      options.onPhase?.("training", step);
      const metrics = await update(step, batches.next());
      average.add(metrics["train/loss"]!);
      return metrics;
    },
    nameWork: (step) => `step ${step}`,
    onStep: (step, metrics) => options.onStep?.(step, metrics, average.value),
    validate: async (step) => {
      const due = step === total || (trainer.test_freq > 0 && step % trainer.test_freq === 0);
      if (!due) return {};
      options.onPhase?.("validation", step);
      return validateSft(training, options);
    },
    record: async (step, metrics) => {
      if (trainer.logger.includes("file")) await folder.appendLine("metrics.jsonl", metrics);
      options.onMetrics?.(step, metrics);
    },
    unvalidated: resumed?.unvalidated,
  });
  return { history, average: average.value };
}

/** Loss on held-out conversations as metrics; none without such conversations. @throws the signal's reason */
export async function validateSft(
  { config, engine, valExamples }: SftTraining,
  { signal, onValidation }: Pick<TrainConversationsOptions, "signal" | "onValidation">,
): Promise<StepMetrics> {
  if (valExamples.length === 0) return {};
  const started = performance.now();
  const { loss, tokens } = await measureLoss(engine, valExamples, {
    batchSize: config.data.train_batch_size,
    signal,
    onProgress: onValidation,
  });
  return { "val/loss": loss, "val/loss_tokens": tokens, "timing_s/testing": (performance.now() - started) / 1000 };
}

/** Makes the function that takes one step on a batch and returns its metrics. */
function makeUpdate({ config, engine, examples }: SftTraining, total: number) {
  const { data, optim }: SftConfig = config;
  // Batches contain conversations of similar length. Divided by its own tokens, a batch of short ones would weigh more
  // per token, and the model would prefer their content.
  const tokensPerBatch = data.train_batch_size * averageLossTokens(examples);
  const loss: LossFunction = (inputs) =>
    crossEntropyLoss({ ...inputs, totals: { ...inputs.totals, tokens: tokensPerBatch } });
  const rate = {
    learningRate: optim.lr,
    schedule: optim.lr_scheduler_type,
    warmupSteps: optim.lr_warmup_steps,
    warmupStepsRatio: optim.lr_warmup_steps_ratio,
    minLrRatio: optim.min_lr_ratio,
    numCycles: optim.num_cycles,
  };
  return async (step: number, batch: readonly SftExample[]): Promise<StepMetrics> => {
    const started = performance.now();
    const learningRate = computeLearningRate(rate, step, total);
    // No signal: an update is always finished.
    const result = await engine.train(batch, loss, {
      learningRate,
      betas: optim.betas,
      weightDecay: optim.weight_decay,
      maxGradNorm: optim.clip_grad,
    });
    const seconds = (performance.now() - started) / 1000;
    const tokens = batch.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
    return {
      "training/global_step": step,
      "training/epoch": Math.floor(((step - 1) * data.train_batch_size) / examples.length),
      // Mean over the batch's own tokens; the minimized loss is divided by an average batch's tokens.
      "train/loss": (result.loss * tokensPerBatch) / Math.max(1, result.lossTokens),
      "train/grad_norm": result.gradNorm,
      "train/lr": learningRate,
      "train/loss_tokens": result.lossTokens,
      "perf/total_num_tokens": tokens,
      "perf/throughput": tokens / seconds,
      "perf/time_per_step": seconds,
    };
  };
}

function averageLossTokens(examples: readonly SftExample[]): number {
  let tokens = 0;
  for (const { lossMask } of examples) for (const bit of lossMask) tokens += bit;
  return tokens / examples.length;
}
