import { type ChecksOf, checkOptions, optionChecks } from "@cria/core/internal";
import type { CheckpointStore } from "../checkpoints/checkpoint-store.js";
import type { RunFolder } from "../checkpoints/run-folder.js";
import { SavePoints } from "../checkpoints/save-points.js";
import { nameWeights, saveWeights } from "../checkpoints/save-weights.js";
import { shareCheckpoint } from "../cluster/share-checkpoint.js";
import { makeSay, type Report, WorkReporter } from "../events.js";
import { RunJournal } from "../journal/run-journal.js";
import { LiveTracker } from "../live/live-tracker.js";
import { listPolicies } from "../policy/of-role.js";
import { runTrainingStep } from "../step/training-step.js";
import type { StepMetrics } from "../step-metrics.js";
import type { Tracker } from "../trackers/tracker.js";
import type { Validation } from "../validation/validate.js";
import { openActiveRun } from "./active-run.js";
import { profileStep } from "./profile-step.js";
import { RunRecord } from "./run-record.js";
import { Steps } from "./steps.js";
import { StepsAhead } from "./steps-ahead.js";
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

const { function: callback, object, text } = optionChecks;

const runChecks: ChecksOf<Required<RunTrainingOptions>> = {
  configFolder: text,
  report: callback,
  trackers: [Array.isArray, "a list of trackers"],
  folder: object,
  checkpoints: object,
  isStopping: callback,
  afterStep: callback,
};

/** Implements `runTraining` of when-called.ts. */
export async function runTraining(training: Training, options: RunTrainingOptions = {}): Promise<TrainSummary> {
  checkOptions("runTraining", options, runChecks);
  const { report, isStopping, afterStep } = options;
  const { config, policy } = training;
  const { trainer } = config;
  if (trainer.val_only) return validateOnly(training, report);
  const { run, ahead, journal, record, steps } = await openSteps(training, options);
  const { folder, live } = run;
  const { total } = ahead;
  const finish = async (step: number, taken: StepMetrics) => {
    const isDue = step === total || (trainer.test_freq > 0 && step % trainer.test_freq === 0);
    const metrics = { ...taken, ...(isDue ? await record.validate(step) : {}) };
    await record.add(step, metrics);
    live.endStep();
    await afterStep?.(() => record.validateAsked(step));
    await steps.commit(metrics);
  };
  let failure: { error: unknown } | undefined;
  try {
    if (trainer.val_before_train && !run.resume)
      await record.log(0, { "training/global_step": 0, ...(await record.validate(0)) });
    const reporter = new WorkReporter(report, "train");
    reporter.update(steps.start, total);
    if (steps.unvalidated) await finish(steps.start, steps.unvalidated);
    for (const step of steps.remaining(isStopping)) {
      live.startStep(step);
      const learn = async () => runTrainingStep(training, await ahead.begin(step));
      const isProfiled = trainer.profile_steps?.includes(step);
      const result = await (isProfiled ? profileStep(folder.file("profiles", `${step}.cpuprofile`), learn) : learn());
      await ahead.end(step, result);
      await steps.keep(step, result.metrics);
      report?.({ type: "step", work: "train", step, total, metrics: result.metrics, heldOut: record.heldOut });
      await record.dump(step, result);
      await finish(step, result.metrics);
    }
    await steps.end();
    reporter.end();
    return {
      path: folder.path,
      weights: folder.file(nameWeights(policy.engine)),
      steps: steps.history,
      metrics: steps.history.at(-1) ?? {},
      ...record.summarize(),
    };
  } catch (error) {
    failure = { error };
    throw await steps.explain(error);
  } finally {
    await ahead.close();
    await journal?.close();
    await run.close(failure);
  }
}

/** Opens the run of a training, and restores what it resumes from. */
async function openSteps(
  training: Training,
  { configFolder = process.cwd(), report, trackers, folder: own, checkpoints }: RunTrainingOptions,
) {
  const { config, policy, coordination, signal } = training;
  const { engine } = policy;
  const run = await openActiveRun(config, {
    engine,
    configFolder,
    live: new LiveTracker(engine, Date.now, coordination?.view),
    trackers,
    signal,
    report,
    place: own && { folder: own, checkpoints, resume: null },
  });
  try {
    const { folder, resume, live } = run;
    const start = resume?.step ?? 0;
    // Without checkpoints nothing is resumed.
    const isKept = training.settings.journal && run.checkpoints !== null;
    const journal = isKept ? await RunJournal.open(folder.path, start, makeSay(report)) : null;
    if (journal) warnOfAgents(training, makeSay(report));
    if (training.settings.partialRollout !== "carry_on") makeSay(report)(dependsOnClock);
    const ahead = new StepsAhead(training, live, journal);
    const { total } = ahead;
    live.begin(start, total);
    const record = await RunRecord.open(training, run, { configFolder, report });
    const unvalidated = resume ? await ahead.restore(resume) : undefined;
    const saveAll = async () => {
      for (const [role, { engine }] of listPolicies(policy)) await saveWeights(engine, folder, role);
    };
    if (resume && start >= total) {
      makeSay(report)(`nothing left to train: ${start} steps are done, and the config asks for ${total}`);
      // If the checkpoint came from another machine, the folder has no weights, or those of an earlier step.
      await saveAll();
    }
    const saves = new SavePoints({
      saveFreq: config.trainer.save_freq,
      saveMinutes: config.trainer.save_minutes,
      total,
      checkpoints: run.checkpoints,
      resume,
      saveWeights: () => {
        live.enter("saving");
        return saveAll();
      },
      // No other machine resumes from a caller's folder.
      share: own ? undefined : (step) => shareCheckpoint(training, { folder, step, report }),
      onSaved: (step) => journal?.drop(step),
    });
    return {
      run,
      ahead,
      journal,
      record,
      steps: new Steps({ start, total, unvalidated, signal, saves, state: ahead }),
    };
  } catch (error) {
    await run.close({ error });
    throw error;
  }
}

const dependsOnClock =
  "rollout.partial_rollout is not carry_on: the newest policy samples each turn, so that what is sampled, and learned, depends on the clock";

/** Names agents that call the policy themselves: what their code asks passes the journal by. */
function warnOfAgents({ registries, environment, trainRows }: Training, say: (text: string) => void): void {
  const names = new Set(trainRows.map(({ agentName }) => agentName ?? environment.defaultAgentLoop));
  const agents = [...names].filter((name) => !registries.agentLoops.get(name).traits.prompt);
  if (agents.length === 0) return;
  say(
    `trainer.journal records nothing that the code of an agent asks itself (${agents.join(", ")}): a conversation that a kill cuts off runs it again`,
  );
}
