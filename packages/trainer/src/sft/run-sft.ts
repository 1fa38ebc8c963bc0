import { constants, existsSync, statSync } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError } from "@cria/core";
import { type ChecksOf, checkOptions, optionChecks } from "@cria/core/internal";
import { checkRun, type OpenedRun, openRun } from "../checkpoints/open-run.js";
import { recordEnd } from "../checkpoints/run-end.js";
import { resolvePath } from "../config/paths.js";
import type { SftConfig } from "../config/sft-config.js";
import { makeSay, type Report, WorkReporter } from "../events.js";
import { LiveTracker } from "../live/live-tracker.js";
import { LiveWriter } from "../live/live-writer.js";
import { countOnes } from "../policy/flat-tokens.js";
import { TrainingInterrupted } from "../run/run-steps.js";
import { makeTrackers, startTrackers, type Trackers } from "../trackers/open-trackers.js";
import type { Tracker } from "../trackers/tracker.js";
import { openSft, type SftTraining } from "./open-sft.js";
import { countSftSteps, trainConversations, validateSft } from "./train-conversations.js";

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

export interface RunSftOptions {
  signal?: AbortSignal;
  report?: Report;
  /** Default: the trackers in `trainer.logger`. */
  trackers?: readonly Tracker[];
}

const sftChecks: ChecksOf<Required<RunSftOptions>> = {
  signal: optionChecks.signal,
  report: optionChecks.function,
  trackers: [Array.isArray, "a list of trackers"],
};

/** Implements `runSft` of when-called.ts. */
export async function runSft(config: SftConfig, folder: string, options: RunSftOptions = {}): Promise<SftResult> {
  checkOptions("runSft", options, sftChecks);
  const { trainer } = config;
  const { report, signal } = options;
  const say = makeSay(report);
  const output = trainer.output_path === null ? null : resolvePath(folder, trainer.output_path);
  if (output) await checkWritable(output);
  await checkRun(config);
  const made = options.trackers ?? makeTrackers(config);
  const training = await openReported(config, folder, { report, signal });
  try {
    const run = await openRun(config, say);
    try {
      return await recordEnd(run.folder, signal, async () => {
        await run.folder.writeOrigin(training.engine, folder);
        const trackers = await startTrackers(made, config, {
          folder: run.folder.path,
          resumedStep: run.resume?.step ?? null,
          warn: say,
        });
        const live = new LiveTracker(null);
        const writer = trainer.logger.includes("file") ? new LiveWriter(run.folder.path, live) : null;
        try {
          const result = await train(training, run, { trackers, live }, { report, signal, say });
          await trackers.finish("finished");
          if (output) await saveTo(training, output);
          const { lora_rank } = config.model;
          const own = run.folder.file(lora_rank > 0 ? "adapter.gguf" : "model.gguf");
          return { path: run.folder.path, output: output ?? own, ...result };
        } catch (error) {
          await trackers.finish(signal?.aborted ? "interrupted" : "failed");
          throw error;
        } finally {
          await writer?.close();
        }
      });
    } finally {
      await run.close();
    }
  } finally {
    await training.engine.dispose();
  }
}

async function openReported(
  config: SftConfig,
  folder: string,
  { report, signal }: Pick<RunSftOptions, "report" | "signal">,
): Promise<SftTraining> {
  const reporter = new WorkReporter(report, "tokenize");
  const training = await openSft(config, folder, {
    signal,
    onProgress: (done, total) => reporter.update(done, total),
    onNote: (text) => report?.({ type: "notice", text }),
  });
  reporter.end();
  return training;
}

async function train(
  training: SftTraining,
  { folder, checkpoints, resume }: OpenedRun,
  { trackers, live }: { trackers: Trackers; live: LiveTracker },
  { report, signal, say }: Pick<RunSftOptions, "report" | "signal"> & { say: (text: string) => void },
): Promise<Omit<SftResult, "path" | "output">> {
  const { trainer } = training.config;
  const total = countSftSteps(training);
  const started = performance.now();
  let tokens = 0;
  live.begin(resume?.step ?? 0, total);
  const validating = reportValidations(report, training.valExamples.length);
  if (trainer.val_before_train && !resume && training.valExamples.length > 0) {
    live.enter("validation");
    const first = await validateFirst(training, total, { signal, onValidation: validating.update });
    validating.end(0, first);
    const metrics = { "training/global_step": 0, ...first };
    if (trainer.logger.includes("file")) await folder.appendLine("metrics.jsonl", metrics);
    trackers.log(0, metrics);
  }
  if (resume && resume.step >= total)
    say(`nothing left to train: ${resume.step} steps are done, and the config asks for ${total}`);
  const reporter = new WorkReporter(report, "sft");
  reporter.update(resume?.step ?? 0, total);
  const { history, average } = await trainConversations(training, folder, {
    signal,
    checkpoints,
    resume,
    onPhase: (phase, step) => (phase === "training" ? live.startStep(step, phase) : live.enter(phase)),
    onStep: (step, metrics, mean) => {
      live.endStep();
      live.addTokens(metrics["perf/total_num_tokens"]!);
      tokens += metrics["perf/total_num_tokens"]!;
      report?.({
        type: "step",
        work: "sft",
        step,
        total,
        metrics: { ...metrics, "train/loss_average": mean },
        heldOut: null,
      });
    },
    onValidation: validating.update,
    onMetrics: (step, metrics) => {
      validating.end(step, metrics);
      trackers.log(step, metrics);
    },
  });
  reporter.end();
  const seconds = (performance.now() - started) / 1000;
  return {
    steps: total,
    loss: average,
    valLoss: history.at(-1)?.["val/loss"] ?? null,
    conversationTokens:
      training.examples.reduce((sum, { lossMask }) => sum + countOnes(lossMask), 0) / training.examples.length,
    seconds,
    tokensPerSecond: tokens / seconds,
  };
}

async function validateFirst(training: SftTraining, total: number, options: Parameters<typeof validateSft>[1]) {
  try {
    return await validateSft(training, options);
  } catch (cause) {
    if (!options.signal?.aborted) throw cause;
    const lost = "the validation before training";
    throw new TrainingInterrupted({ step: 0, total, checkpoint: null, lost }, { cause });
  }
}

/** Reports a validation's progress and its loss. */
function reportValidations(report: Report | undefined, conversations: number) {
  const reporter = new WorkReporter(report, "validate");
  return {
    update: (done: number, total: number) => reporter.update(done, total),
    end: (step: number, metrics: Record<string, number>) => {
      const loss = metrics["val/loss"];
      if (loss !== undefined)
        report?.({ type: "validated", step, success: null, loss, failed: 0, conversations, temperature: null });
      reporter.end();
    },
  };
}

async function saveTo({ engine }: SftTraining, file: string): Promise<void> {
  await (engine.info.trainable === "lora" ? engine.saveAdapter(file) : engine.saveModel(file));
}

/** Fails before the training rather than after it. @throws ConfigError */
async function checkWritable(file: string): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true });
    await access(dirname(file), constants.W_OK);
    if (existsSync(file) && !statSync(file).isFile()) throw new Error("is not a file");
  } catch (cause) {
    throw new ConfigError("cannot be written", {
      code: "config/output-not-writable",
      subject: `trainer.output_path ${file}`,
      expected: "a file name in a writable folder",
      received: (cause as Error).message,
      cause,
    });
  }
}
