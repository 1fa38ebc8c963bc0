import { join } from "node:path";
import { restoreEngines } from "../checkpoints/checkpoint-store.js";
import { findResume, findRunPath, type OpenedRun, openRun } from "../checkpoints/open-run.js";
import { formatCount, Progress } from "../terminal/progress.js";
import type { Generation } from "../trackers/generation.js";
import { startTrackers, type Trackers } from "../trackers/open-trackers.js";
import type { Tracker } from "../trackers/tracker.js";
import type { StepMetrics } from "./collect-metrics.js";
import { countSteps } from "./count-steps.js";
import { pickGenerations } from "./pick-generations.js";
import { listEngines, runTraining } from "./run-training.js";
import { runValidation } from "./run-validation.js";
import type { Session } from "./session-type.js";
import { TrainingInterrupted } from "./training-interrupted.js";
import { readSuccess } from "./validate.js";

export interface TrainSessionOptions {
  /** Where relative paths of the config start. */
  configFolder: string;
  silent: boolean;
  /** Told of what happens to earlier runs, of damaged checkpoints, and of failing trackers. */
  say: (text: string) => void;
  /** Made beforehand, so that a missing key is found before the model is loaded. */
  trackers: readonly Tracker[];
}

export interface TrainSummary {
  /** The run folder. */
  path: string;
  /** Of the last step, or of the validation with `val_only`. */
  metrics: StepMetrics;
}

/** A run of `cria train`: run folder, resume, validations before, during and after, trackers, end. */
export async function trainSession(session: Session, options: TrainSessionOptions): Promise<TrainSummary> {
  if (session.config.trainer.val_only) return validateOnly(session, options);
  const run = await openRun(session.config, options.say);
  try {
    await run.folder.writeOrigin(session.engine.info.path, options.configFolder);
    const trackers = await startTrackers(options.trackers, session.config, {
      folder: run.folder.path,
      resumedStep: run.resume?.step ?? null,
      warn: options.say,
    });
    try {
      const metrics = await trainAndValidate(session, run, trackers, options);
      await trackers.finish("finished");
      return { path: run.folder.path, metrics };
    } catch (error) {
      await trackers.finish(session.rollout.signal?.aborted ? "interrupted" : "failed");
      throw error;
    }
  } finally {
    await run.close();
  }
}

async function trainAndValidate(
  session: Session,
  { folder, checkpoints, resume }: OpenedRun,
  trackers: Trackers,
  { silent, say }: TrainSessionOptions,
): Promise<StepMetrics> {
  const { trainer } = session.config;
  const total = countSteps(session);
  // Of the last validation, until its step is logged.
  let generations: Generation[] | undefined;
  const log = (step: number, metrics: StepMetrics) => {
    trackers.log(step, metrics, generations);
    generations = undefined;
  };
  const validateAt = async (step: number): Promise<StepMetrics> => {
    const file = join(trainer.validation_data_dir ?? folder.file("validation"), `${step}.jsonl`);
    const result = await runValidation(session, { step, file, silent });
    generations = result ? pickGenerations(session, result.trajectories, trainer.log_val_generations) : undefined;
    return result ? { ...result.metrics, "timing_s/testing": result.seconds } : {};
  };
  if (trainer.val_before_train && !resume) {
    const metrics = { "training/global_step": 0, ...(await validateBefore(session, () => validateAt(0), total)) };
    if (trainer.logger.includes("file")) await folder.appendLine("metrics.jsonl", metrics);
    log(0, metrics);
  }
  if (resume && resume.step >= total)
    say(`nothing left to train: ${resume.step} steps are done, and the config asks for ${total}`);
  const progress = new Progress({ label: "train", total, silent, start: resume?.step });
  const history = await runTraining(session, folder, {
    checkpoints,
    resume,
    onStep: (step, _, m) =>
      progress.update(
        step,
        `reward ${m["critic/rewards/mean"]?.toFixed(3) ?? "none"} · ${formatCount(m["perf/throughput"]!)} tok/s · grad ${(m["actor/grad_norm"] ?? 0).toFixed(2)}`,
      ),
    validate: async (step) => {
      const due = step === total || (trainer.test_freq > 0 && step % trainer.test_freq === 0);
      return due ? validateAt(step) : {};
    },
    onMetrics: log,
  });
  progress.finish();
  return history.at(-1) ?? {};
}

async function validateBefore(
  session: Session,
  validate: () => Promise<StepMetrics>,
  total: number,
): Promise<StepMetrics> {
  try {
    return await validate();
  } catch (cause) {
    if (!session.rollout.signal?.aborted) throw cause;
    throw new TrainingInterrupted(
      { step: 0, total, checkpoint: null, lost: "the validation before training" },
      { cause },
    );
  }
}

/** Looks at the policy (of the checkpoint that training would go on from, if any) and changes nothing of the run. */
async function validateOnly(session: Session, { silent, say }: TrainSessionOptions): Promise<TrainSummary> {
  const { trainer } = session.config;
  const path = findRunPath(session.config);
  const checkpoint = await findResume(session.config, say);
  if (checkpoint) {
    await restoreEngines(checkpoint, listEngines(session));
    say(`validating ${checkpoint.path}`);
  }
  const step = checkpoint?.step ?? 0;
  const file = join(trainer.validation_data_dir ?? join(path, "validation"), `val_only-${step}.jsonl`);
  const result = await runValidation(session, { step, file, silent });
  if (result) readSuccess(result, `the validation of step ${step}`);
  return { path, metrics: { "training/global_step": step, ...result?.metrics } };
}
