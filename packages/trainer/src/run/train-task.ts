import { checkRun } from "../checkpoints/open-run.js";
import { fetchCheckpoint } from "../cluster/fetch-checkpoint.js";
import { takeLead } from "../cluster/take-lead.js";
import { listInert } from "../config/list-inert.js";
import { type ConfigWarning, listWarnings } from "../config/list-warnings.js";
import type { TrainConfig } from "../config/train-config.js";
import type { Report, StepEvent } from "../events.js";
import { fetchTrainAddresses } from "../hub/fetch-addresses.js";
import { checkSamples } from "../task/check-samples.js";
import { findOverlongPrompts } from "../task/find-overlong-prompts.js";
import { findUnseenTools } from "../task/find-unseen-tools.js";
import { makeTrackers } from "../trackers/open-trackers.js";
import { loadHeldOut } from "./held-out.js";
import { listContexts, listContextWarnings } from "./list-contexts.js";
import { makeConfig } from "./make-config.js";
import { TrainingInterrupted } from "./run-steps.js";
import { type RunTrainingOptions, runTraining } from "./run-training.js";
import type { TrainOptions } from "./train-options.js";
import type { TrainResult, TrainStep } from "./train-result.js";
import { openTraining, type Training } from "./training.js";

export interface TrainTaskOptions extends Required<Pick<RunTrainingOptions, "isStopping" | "afterStep">> {
  /** Base of the options' relative paths. */
  configFolder: string;
  /** Called with each finished step. */
  onStep: (step: TrainStep) => void;
}

/** Opens everything that the options name, and trains. `train` loads this module when it is called. */
export async function trainTask(
  options: TrainOptions,
  { configFolder, onStep, isStopping, afterStep }: TrainTaskOptions,
): Promise<TrainResult> {
  const { task, bus } = options;
  const { config, registries, findsToolFormat } = makeConfig(options);
  const report: Report = (event) => {
    if (event.type === "step") onStep(describeStep(event));
    options.report?.(event);
  };
  const own = (options.trackers ?? []).filter((tracker) => typeof tracker !== "string");
  const trackers = [...makeTrackers(config), ...own];
  await fetchTrainAddresses(config, { report, signal: options.signal });
  await warnOfSettings(config, configFolder, report);
  // Take the lead first: the newest checkpoint may come from the machine that had the lead before.
  const lead = await takeLead(bus, { signal: options.signal, report });
  const { signal } = lead;
  let training: Training | undefined;
  try {
    if (!config.trainer.val_only) {
      await fetchCheckpoint(bus, config, { signal, report });
      await checkRun(config);
    }
    training = await openTraining(config, configFolder, {
      task,
      valRows: await loadHeldOut(options, config, configFolder),
      registries,
      findsToolFormat,
      bus,
      signal,
      report,
    });
    const overlong = await findOverlongPrompts(training, configFolder, report);
    if (overlong !== null) report({ type: "warning", text: overlong });
    const unseen = findUnseenTools(training.policy, training.environment, training.trainRows);
    if (unseen !== null) report({ type: "warning", text: unseen });
    const alone = checkSamples(training.trainRows, training.settings, training.registries);
    if (alone !== null) report({ type: "warning", text: alone });
    warnOfFewRows(training, report);
    const summary = await runTraining(training, {
      configFolder,
      report,
      trackers,
      isStopping,
      afterStep,
    });
    return describeResult(training, summary);
  } catch (error) {
    // An interruption already describes what was lost.
    throw error instanceof TrainingInterrupted ? error : lead.explain(error);
  } finally {
    await training?.dispose();
    await lead.end();
  }
}

/** Warns about settings before anything is loaded; settings without effect are only notices. */
async function warnOfSettings(config: TrainConfig, folder: string, report: Report): Promise<void> {
  const describe = ({ key, found, remedy }: ConfigWarning) => `${key}: ${found}; ${remedy}`;
  for (const warning of [...listWarnings(config), ...listContextWarnings(await listContexts(config, folder))])
    report({ type: "warning", text: describe(warning) });
  for (const inert of listInert(config)) report({ type: "notice", text: describe(inert) });
}

function warnOfFewRows({ config, trainRows }: Training, report: Report): void {
  const { train_batch_size: asked } = config.data;
  if (asked <= trainRows.length || config.trainer.val_only) return;
  const text = `data.train_batch_size: is ${asked}, and there ${trainRows.length === 1 ? "is 1 row" : `are ${trainRows.length} rows`}: each step takes all of them; add rows, or lower it`;
  report({ type: "warning", text });
}

function describeStep({ step, total, metrics, heldOut }: StepEvent): TrainStep {
  return {
    step,
    total,
    reward: metrics["critic/score/mean"] ?? null,
    success: metrics["reward/score/mean"] ?? null,
    heldOut,
    metrics,
  };
}

function describeResult(
  { policy, valRows }: Training,
  { path, weights, metrics, progress, problems }: Awaited<ReturnType<typeof runTraining>>,
): TrainResult {
  const isLora = policy.engine.info.trainable === "lora";
  return {
    before: progress?.before.success ?? null,
    after: progress?.after.success ?? null,
    progress,
    adapter: isLora ? weights : null,
    model: isLora ? null : weights,
    folder: path,
    metrics,
    problems,
    heldOutRows: valRows.length,
  };
}
