import type { CheckpointStore } from "../checkpoints/checkpoint-store.js";
import { type OpenedRun, openRun } from "../checkpoints/open-run.js";
import { recordEnd } from "../checkpoints/run-end.js";
import type { RunFolder } from "../checkpoints/run-folder.js";
import { SavePoints } from "../checkpoints/save-points.js";
import { nameWeights, saveWeights } from "../checkpoints/save-weights.js";
import { shareCheckpoint } from "../cluster/share-checkpoint.js";
import { readBeginning } from "../diagnose/read-beginning.js";
import { makeSay, type Report, WorkReporter } from "../events.js";
import { LiveTracker } from "../live/live-tracker.js";
import { LiveWriter } from "../live/live-writer.js";
import { countSteps } from "../step/learning-rate.js";
import { runTrainingStep, type StepResult } from "../step/training-step.js";
import type { StepMetrics } from "../step-metrics.js";
import { startTrackers, type Trackers } from "../trackers/open-trackers.js";
import type { Tracker } from "../trackers/tracker.js";
import type { Validation } from "../validation/validate.js";
import { profileStep } from "./profile-step.js";
import { RunRecord } from "./run-record.js";
import { RunState } from "./run-state.js";
import { runSteps, TrainingInterrupted } from "./run-steps.js";
import { readSchedule, StepsAhead } from "./steps-ahead.js";
import type { TrainSummary } from "./train-summary.js";
import type { Training } from "./training.js";
import { validateOnly } from "./validate-only.js";

export interface RunTrainingOptions {
  /** Base of the config's relative paths; default: the working directory. */
  configFolder?: string;
  report?: Report;
  /** Trackers created beforehand, so that a missing key is found before the model is loaded; default: none. */
  trackers?: readonly Tracker[];
  /** The caller's own folder, used instead of the run folder that the config names; nothing is resumed. */
  folder?: RunFolder;
  /** Store for the checkpoints of a caller's folder; default: none are kept. */
  checkpoints?: CheckpointStore;
  /** True ends the run after the current step. */
  isStopping?: () => boolean;
  /** Called after each step; the run waits for it. */
  afterStep?: (validate: () => Promise<Validation | null>) => Promise<void>;
}

/** Implements `runTraining` of when-called.ts. */
export async function runTraining(training: Training, options: RunTrainingOptions = {}): Promise<TrainSummary> {
  const { report, isStopping, afterStep } = options;
  const { config, policy, signal } = training;
  const { trainer } = config;
  if (trainer.val_only) return validateOnly(training, report);
  return withRun(training, options, async ({ folder, checkpoints, resume }, { trackers, live }) => {
    const total = countSteps(training.settings, training.trainRows.length);
    const start = resume?.step ?? 0;
    live?.begin(start, total);
    const beginning = await readBeginning(config, options.configFolder ?? process.cwd());
    const record = new RunRecord({ training, folder, trackers, report, live, beginning });
    const state = new RunState(training);
    const ahead = new StepsAhead(training, state, readSchedule(training), live);
    if (resume) await record.restore();
    else if (trainer.val_before_train)
      await record.log(0, { "training/global_step": 0, ...(await validateBefore(training, record, total)) });
    const unvalidated = resume ? await state.restore(resume) : undefined;
    if (resume) await ahead.restore(resume);
    if (resume && start >= total) {
      makeSay(report)(`nothing left to train: ${start} steps are done, and the config asks for ${total}`);
      // If the checkpoint came from another machine, the folder has no weights, or those of an earlier step.
      await saveWeights(policy.engine, folder);
    }
    const reporter = new WorkReporter(report, "train");
    reporter.update(start, total);
    let taken: StepResult;
    const steps = await runSteps({
      start,
      total,
      signal,
      isStopping,
      saves: new SavePoints({
        saveFreq: trainer.save_freq,
        saveMinutes: trainer.save_minutes,
        total,
        checkpoints,
        resume,
        saveWeights: () => {
          live?.enter("saving");
          return saveWeights(policy.engine, folder);
        },
        // No other machine resumes from a caller's folder.
        share: options.folder ? undefined : (step) => shareCheckpoint(training, { folder, step, report }),
      }),
      mark: (step) => state.mark(step),
      describe: (place) => {
        const { files, ...described } = state.describe(place);
        return { ...described, files: { ...files, ...ahead.describe(place.step) } };
      },
      take: async (step) => {
        live?.startStep(step);
        const take = async () => runTrainingStep(training, await ahead.begin(step));
        const isProfiled = trainer.profile_steps?.includes(step);
        const result = await (isProfiled ? profileStep(folder.file("profiles", `${step}.cpuprofile`), take) : take());
        taken = result;
        await ahead.end(step, result);
        return result.metrics;
      },
      nameWork: (step) => `the rollouts of step ${step}`,
      onStep: async (step, metrics) => {
        report?.({ type: "step", work: "train", step, total, metrics, heldOut: record.heldOut });
        await record.dump(step, taken);
      },
      validate: async (step) => {
        const isDue = step === total || (trainer.test_freq > 0 && step % trainer.test_freq === 0);
        return isDue ? record.validate(step) : {};
      },
      record: async (step, metrics) => {
        await record.add(step, metrics);
        live?.endStep();
        await afterStep?.(() => record.validateAsked(step));
      },
      unvalidated,
    }).finally(() => ahead.close());
    reporter.end();
    return {
      path: folder.path,
      weights: folder.file(nameWeights(policy.engine)),
      steps,
      metrics: steps.at(-1) ?? {},
      ...record.summarize(),
    };
  });
}

/** A caller's folder may have no checkpoints. */
type Run = Pick<OpenedRun, "folder" | "resume"> & Partial<Pick<OpenedRun, "checkpoints">>;

/** Recipients of a run's progress. */
interface Watchers {
  trackers: Trackers;
  /** Null if nothing is written to files. */
  live: LiveTracker | null;
}

/** Opens the run folder and the trackers of a run, and records in both how it ended. */
async function withRun<T>(
  training: Training,
  { configFolder = process.cwd(), report, trackers: given = [], folder, checkpoints }: RunTrainingOptions,
  work: (run: Run, watchers: Watchers) => Promise<T>,
): Promise<T> {
  const say = makeSay(report);
  const run = folder
    ? { folder, checkpoints, resume: null, close: () => undefined }
    : await openRun(training.config, say);
  try {
    return await recordEnd(run.folder, training.signal, async () => {
      await run.folder.writeOrigin(training.policy.engine, configFolder);
      const resumedStep = run.resume?.step ?? null;
      const trackers = await startTrackers(given, training.config, { folder: run.folder.path, resumedStep, warn: say });
      const live = training.config.trainer.logger.includes("file")
        ? new LiveTracker(training.policy.engine, Date.now, training.coordination?.view)
        : null;
      const writer = live && new LiveWriter(run.folder.path, live);
      try {
        const result = await work(run, { trackers, live });
        await trackers.finish("finished");
        return result;
      } catch (error) {
        await trackers.finish(training.signal?.aborted ? "interrupted" : "failed");
        throw error;
      } finally {
        await writer?.close();
      }
    });
  } finally {
    run.close();
  }
}

/** Validates the policy before training. @throws TrainingInterrupted when its signal aborted. */
async function validateBefore(training: Training, record: RunRecord, total: number): Promise<StepMetrics> {
  try {
    return await record.validate(0);
  } catch (cause) {
    if (!training.signal?.aborted) throw cause;
    const interrupted = { step: 0, total, checkpoint: null, lost: "the validation before training" };
    throw new TrainingInterrupted(interrupted, { cause });
  }
}
