import { join } from "node:path";
import { restoreEngines } from "../checkpoints/checkpoint-store.js";
import { findResume, findRunPath, type OpenedRun, openRun } from "../checkpoints/open-run.js";
import { findProblems, type Problem } from "../diagnose/find-problems.js";
import { type Report, WorkReporter } from "../events.js";
import { countSteps } from "../step/learning-rate.js";
import type { StepMetrics } from "../step-metrics.js";
import type { Generation } from "../trackers/generation.js";
import { startTrackers, type Trackers } from "../trackers/open-trackers.js";
import { pickGenerations } from "../trackers/pick-generations.js";
import type { Tracker } from "../trackers/tracker.js";
import { runValidation } from "../validation/run-validation.js";
import { readSuccess, type Validation } from "../validation/validate.js";
import {
  compareEnds,
  type Measurements,
  measureStep,
  type RunProgress,
  readFirstValidation,
} from "./measure-progress.js";
import { TrainingInterrupted } from "./run-steps.js";
import { listEngines, nameWeights, runTraining } from "./run-training.js";
import type { Session } from "./session.js";

export interface TrainSessionOptions {
  /** Where relative paths of the config start. */
  configFolder: string;
  report?: Report;
  /** Made beforehand, so that a missing key is found before the model is loaded. */
  trackers: readonly Tracker[];
  /** Whether the run is to end after the step that it takes. */
  isStopping?: () => boolean;
  /** After each step; the run waits for it. */
  afterStep?: (validate: () => Promise<Validation | null>) => Promise<void>;
}

export interface TrainSummary {
  /** The run folder. */
  path: string;
  /** File of the trained weights; not there after `val_only`. */
  weights: string;
  /** Of the last step, or of the validation with `val_only`. */
  metrics: StepMetrics;
  /** Null where there is nothing to compare: one validation, or none and fewer than two steps. */
  progress: RunProgress | null;
  /** Why the run does not learn, as far as its last steps tell; the likeliest cause first. Empty when it does. */
  problems: Problem[];
}

/** A run of `cria train`: run folder, resume, validations before, during and after, trackers, end. */
export async function trainSession(session: Session, options: TrainSessionOptions): Promise<TrainSummary> {
  if (session.config.trainer.val_only) return validateOnly(session, options);
  const { report, isStopping, afterStep } = options;
  return withRun(session, options, async ({ folder, checkpoints, resume }, trackers) => {
    const { trainer } = session.config;
    const total = countSteps(session.config, session.trainRows.length);
    const validations = trainer.validation_data_dir ?? folder.file("validation");
    // What a resumed run did before counts: it may have learned all that there is.
    const history = resume ? await folder.readMetrics() : [];
    const measurements: Measurements = { heldOut: [], training: history.flatMap((m) => measureStep(m) ?? []) };
    const first = resume ? await readFirstValidation(validations) : null;
    if (first) measurements.heldOut.push(first);
    const hasTools = session.environment.tools.size > 0;
    let isTold = false;
    // Of the last validation, until its step is logged.
    let generations: Generation[] | undefined;
    const log = (step: number, metrics: StepMetrics) => {
      trackers.log(step, metrics, generations);
      generations = undefined;
    };
    const validateAt = async (step: number): Promise<StepMetrics> => {
      const file = join(validations, `${step}.jsonl`);
      const result = await runValidation(session, { step, file, report });
      generations = result
        ? pickGenerations(session.policy.engine, session.valRows, result.trajectories, trainer.log_val_generations)
        : undefined;
      if (result?.success != null) measurements.heldOut.push({ step, success: result.success });
      return result ? { ...result.metrics, "timing_s/testing": result.seconds } : {};
    };
    if (trainer.val_before_train && !resume) {
      const metrics = { "training/global_step": 0, ...(await validateBefore(session, () => validateAt(0), total)) };
      if (trainer.logger.includes("file")) await folder.appendLine("metrics.jsonl", metrics);
      log(0, metrics);
    }
    if (resume && resume.step >= total)
      makeSay(report)(`nothing left to train: ${resume.step} steps are done, and the config asks for ${total}`);
    const reporter = new WorkReporter(report, "train");
    reporter.update(resume?.step ?? 0, total);
    const taken = await runTraining(session, folder, {
      checkpoints,
      resume,
      onStep: (step, _, metrics) => {
        const heldOut = measurements.heldOut.at(-1)?.success ?? null;
        report?.({ type: "step", work: "train", step, total, metrics, heldOut });
      },
      validate: async (step) => {
        const due = step === total || (trainer.test_freq > 0 && step % trainer.test_freq === 0);
        return due ? validateAt(step) : {};
      },
      isStopping,
      onMetrics: async (step, metrics) => {
        log(step, metrics);
        history.push(metrics);
        const measured = measureStep(metrics);
        if (measured) measurements.training.push(measured);
        const [problem] = isTold ? [] : findProblems(history, { hasTools });
        if (problem) report?.({ type: "problem", problem, runPath: folder.path });
        isTold ||= problem !== undefined;
        const file = join(validations, `asked-${step}.jsonl`);
        await afterStep?.(() => runValidation(session, { step, file, report }));
      },
    });
    reporter.end();
    return {
      path: folder.path,
      weights: folder.file(nameWeights(session.policy.engine)),
      metrics: taken.at(-1) ?? {},
      progress: compareEnds(measurements),
      // At its end a short run has said all that it will.
      problems: findProblems(history, { hasTools, fewest: 3 }),
    };
  });
}

/** Opens the run folder and the trackers of a run, and tells the trackers how it ended. */
async function withRun<T>(
  session: Session,
  { configFolder, report, trackers: given }: TrainSessionOptions,
  work: (run: OpenedRun, trackers: Trackers) => Promise<T>,
): Promise<T> {
  const run = await openRun(session.config, makeSay(report));
  try {
    await run.folder.writeOrigin(session.policy.engine.info.path, configFolder);
    const trackers = await startTrackers(given, session.config, {
      folder: run.folder.path,
      resumedStep: run.resume?.step ?? null,
      warn: makeSay(report),
    });
    try {
      const result = await work(run, trackers);
      await trackers.finish("finished");
      return result;
    } catch (error) {
      await trackers.finish(session.signal?.aborted ? "interrupted" : "failed");
      throw error;
    }
  } finally {
    await run.close();
  }
}

/** Notices as the run's parts give them. */
function makeSay(report: Report | undefined): (text: string) => void {
  return (text) => report?.({ type: "notice", text });
}

async function validateBefore(
  session: Session,
  validate: () => Promise<StepMetrics>,
  total: number,
): Promise<StepMetrics> {
  try {
    return await validate();
  } catch (cause) {
    if (!session.signal?.aborted) throw cause;
    throw new TrainingInterrupted(
      { step: 0, total, checkpoint: null, lost: "the validation before training" },
      { cause },
    );
  }
}

/** Looks at the policy (of the checkpoint that training would go on from, if any) and changes nothing of the run. */
async function validateOnly(session: Session, { report }: TrainSessionOptions): Promise<TrainSummary> {
  const say = makeSay(report);
  const { trainer } = session.config;
  const path = findRunPath(session.config);
  const checkpoint = await findResume(session.config, say);
  if (checkpoint) {
    await restoreEngines(checkpoint, listEngines(session));
    say(`validating ${checkpoint.path}`);
  }
  const step = checkpoint?.step ?? 0;
  const file = join(trainer.validation_data_dir ?? join(path, "validation"), `val_only-${step}.jsonl`);
  const result = await runValidation(session, { step, file, report });
  if (result) readSuccess(result, `the validation of step ${step}`);
  return {
    path,
    weights: join(path, nameWeights(session.policy.engine)),
    metrics: { "training/global_step": step, ...result?.metrics },
    progress: null,
    problems: [],
  };
}
