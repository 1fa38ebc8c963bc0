import { crossEntropyLoss } from "@cria/algorithms";
import type { LossFunction } from "@cria/core";
import { restoreEngines, type Unvalidated } from "../checkpoints/checkpoint-store.js";
import { SavePoints } from "../checkpoints/save-points.js";
import { saveWeights } from "../checkpoints/save-weights.js";
import type { SftConfig } from "../config/sft-config.js";
import { makeSay, type Report, WorkReporter } from "../events.js";
import type { ActiveRun } from "../run/active-run.js";
import { Steps } from "../run/steps.js";
import { computeLearningRate } from "../step/learning-rate.js";
import type { StepMetrics } from "../step-metrics.js";
import type { SftExample } from "../task/read-examples.js";
import { type BatchesState, BucketedBatches } from "./bucketed-batches.js";
import { LossAverage, type LossAverageState } from "./loss-average.js";
import { measureLoss } from "./measure-loss.js";
import type { SftTraining } from "./open-sft.js";

/** A checkpoint's data.json. */
interface ResumedData extends Unvalidated {
  batches: BatchesState;
  average: LossAverageState;
}

/** Steps of a run: trainer.total_training_steps, or as many as its epochs have. */
function countSftSteps({ config: { data, trainer }, examples }: Pick<SftTraining, "config" | "examples">): number {
  return trainer.total_training_steps ?? Math.ceil((trainer.total_epochs * examples.length) / data.train_batch_size);
}

export interface SftResult {
  /** The run folder. */
  path: string;
  /** The trained GGUF: a model, or with LoRA an adapter. */
  output: string;
  /** Steps of the whole run. */
  steps: number;
  /** Moving average over the last steps, each the mean over its batch's tokens. */
  loss: number;
  /** Loss on held-out conversations at the end; null if there are none, or if nothing was left to train. */
  valLoss: number | null;
  /** Tokens in the loss, mean over the conversations. */
  conversationTokens: number;
  /** Duration in this process, without loading. */
  seconds: number;
  tokensPerSecond: number;
}

/**
 * Trains on the conversations to the end, with the loss on assistant tokens and their end-of-turn tokens. Metrics,
 * weights and state go to the run folder. A resumed run computes the same as an uninterrupted one.
 * @throws TrainingInterrupted when the signal aborted; the current update is then finished and saved.
 */
export async function trainConversations(
  training: SftTraining,
  { folder, checkpoints, resume, trackers, live }: ActiveRun,
  { signal, report }: { signal?: AbortSignal; report?: Report },
): Promise<Omit<SftResult, "path" | "output">> {
  const { config, engine, examples, valExamples } = training;
  const { data, trainer } = config;
  const total = countSftSteps(training);
  const start = resume?.step ?? 0;
  const started = performance.now();
  let tokens = 0;
  live.begin(start, total);
  if (resume && start >= total)
    makeSay(report)(`nothing left to train: ${start} steps are done, and the config asks for ${total}`);
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
  const validate = async (step: number) => {
    if (valExamples.length === 0) return {};
    live.enter("validation");
    return validateSft(training, step, { signal, report });
  };
  const write = async (step: number, metrics: StepMetrics) => {
    if (trainer.logger.includes("file")) await folder.appendLine("metrics.jsonl", metrics);
    trackers.log(step, metrics);
  };
  const steps = new Steps({
    start,
    total,
    unvalidated: resumed?.unvalidated,
    signal,
    saves: new SavePoints({
      saveFreq: trainer.save_freq,
      saveMinutes: trainer.save_minutes,
      total,
      checkpoints,
      resume,
      saveWeights: () => saveWeights(engine, folder),
    }),
    state: {
      mark: (step) => ({ step, batches: batches.save(), average: average.save() }),
      describe: ({ step, ...data }) => ({
        engines: { actor: engine },
        data: data satisfies ResumedData,
        // There is no generator state: the order follows from a hash of the seed and the batch number.
        rng: { seed: trainer.seed, step },
      }),
    },
  });
  const finish = async (step: number, taken: StepMetrics) => {
    const isDue = step === total || (trainer.test_freq > 0 && step % trainer.test_freq === 0);
    const metrics = { ...taken, ...(isDue ? await validate(step) : {}) };
    await write(step, metrics);
    await steps.commit(metrics);
  };
  try {
    if (trainer.val_before_train && !resume && valExamples.length > 0)
      await write(0, { "training/global_step": 0, ...(await validate(0)) });
    const reporter = new WorkReporter(report, "sft");
    reporter.update(start, total);
    if (steps.unvalidated) await finish(start, steps.unvalidated);
    for (const step of steps.remaining()) {
      live.startStep(step, "training");
      const metrics = await update(step, batches.next());
      average.add(metrics["train/loss"]!);
      await steps.keep(step, metrics);
      live.endStep();
      live.addTokens(metrics["perf/total_num_tokens"]!);
      tokens += metrics["perf/total_num_tokens"]!;
      const averaged = { ...metrics, "train/loss_average": average.value };
      report?.({ type: "step", work: "sft", step, total, metrics: averaged, heldOut: null });
      await finish(step, metrics);
    }
    await steps.end();
    reporter.end();
  } catch (error) {
    throw await steps.explain(error);
  }
  const seconds = (performance.now() - started) / 1000;
  return {
    steps: total,
    loss: average.value,
    valLoss: steps.history.at(-1)?.["val/loss"] ?? null,
    conversationTokens: averageLossTokens(examples),
    seconds,
    tokensPerSecond: tokens / seconds,
  };
}

/** Measures the loss on the held-out conversations, and reports it. @throws the signal's reason */
async function validateSft(
  { config, engine, valExamples }: SftTraining,
  step: number,
  { signal, report }: { signal?: AbortSignal; report?: Report },
): Promise<StepMetrics> {
  const started = performance.now();
  const reporter = new WorkReporter(report, "validate");
  const { loss, tokens } = await measureLoss(engine, valExamples, {
    batchSize: config.data.train_batch_size,
    signal,
    onProgress: (done, total) => reporter.update(done, total),
  });
  const conversations = valExamples.length;
  report?.({ type: "validated", step, success: null, loss, failed: 0, conversations, temperature: null });
  reporter.end();
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
