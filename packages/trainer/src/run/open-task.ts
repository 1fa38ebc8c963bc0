import { checkRun } from "../checkpoints/open-run.js";
import { fetchCheckpoint } from "../cluster/fetch-checkpoint.js";
import { takeLead } from "../cluster/take-lead.js";
import { listInert } from "../config/list-inert.js";
import { type ConfigWarning, listWarnings } from "../config/list-warnings.js";
import type { TrainConfig } from "../config/train-config.js";
import type { Report } from "../events.js";
import { fetchTrainAddresses } from "../hub/fetch-addresses.js";
import { checkSamples } from "../task/check-samples.js";
import { Disposables } from "../task/disposables.js";
import { findOverlongPrompts } from "../task/find-overlong-prompts.js";
import { findUnseenTools } from "../task/find-unseen-tools.js";
import { makeTrackers } from "../trackers/open-trackers.js";
import type { Tracker } from "../trackers/tracker.js";
import { loadHeldOut } from "./held-out.js";
import { listContexts, listContextWarnings } from "./list-contexts.js";
import { listFormatWarnings } from "./list-format-warnings.js";
import { listTargetWarnings } from "./list-targets.js";
import { makeConfig, nameOptions, nameOptionsIn } from "./make-config.js";
import { TrainingInterrupted } from "./steps.js";
import type { TrainOptions } from "./train-options.js";
import { openTraining, type Training } from "./training.js";

/** The opened parts that the options of `train` name. */
export interface OpenedTask {
  training: Training;
  trackers: Tracker[];
  /** Returns the cause of a failure: the loss of the bus's lead, if it was lost. */
  explain(error: unknown): unknown;
  dispose(): Promise<void>;
}

/** Opens everything that the options name. With a bus it first waits for the lead. */
export function openTask(options: TrainOptions, configFolder: string, report: Report): Promise<OpenedTask> {
  return Disposables.open(async (open) => {
    const { task, bus } = options;
    const { config, registries, findsToolFormat } = makeConfig(options);
    const own = (options.trackers ?? []).filter((tracker) => typeof tracker !== "string");
    const trackers = [...makeTrackers(config), ...own];
    await fetchTrainAddresses(config, { report, signal: options.signal });
    await warnOfSettings(config, configFolder, { options, report, findsToolFormat });
    // Take the lead first: the newest checkpoint may come from the machine that had the lead before.
    const lead = await takeLead(bus, { signal: options.signal, report });
    open.add(() => lead.end());
    const { signal } = lead;
    // An interruption already describes what was lost.
    const explain = (error: unknown) =>
      error instanceof TrainingInterrupted ? error : lead.explain(nameOptionsIn(options, error));
    try {
      if (!config.trainer.val_only) {
        await fetchCheckpoint(bus, config, { signal, report });
        await checkRun(config);
      }
      const valRows = await loadHeldOut(options, config, configFolder);
      const opening = { task, valRows, registries, findsToolFormat, bus, signal, report };
      const training = await openTraining(config, configFolder, opening);
      open.add(() => training.dispose());
      await warnOfRows(training, configFolder, { options, report });
      return { training, trackers, explain, dispose: () => open.dispose() };
    } catch (error) {
      throw explain(error);
    }
  });
}

/** Options of a training, whose names warnings have, and the function that receives these. */
interface Reported {
  options: TrainOptions;
  report: Report;
}

interface ReportedSettings extends Reported {
  /** True if the config's format of calls is not used. */
  findsToolFormat: boolean;
}

/** Warns about settings before anything is loaded; settings without effect are only notices. */
async function warnOfSettings(
  config: TrainConfig,
  folder: string,
  { options, report, findsToolFormat }: ReportedSettings,
): Promise<void> {
  const describe = ({ key, found, remedy }: ConfigWarning) => nameOptions(options, `${key}: ${found}; ${remedy}`);
  const warnings = [
    ...listWarnings(config),
    ...(await listTargetWarnings(config, folder)),
    ...listContextWarnings(await listContexts(config, folder)),
    ...(findsToolFormat ? [] : await listFormatWarnings(config, folder)),
  ];
  for (const warning of warnings) report({ type: "warning", text: describe(warning) });
  for (const inert of listInert(config)) report({ type: "notice", text: describe(inert) });
}

/** Warns about rows that do not fit the model, the tools or the settings. */
async function warnOfRows(training: Training, folder: string, { options, report }: Reported): Promise<void> {
  const { policy, environment, trainRows, settings, registries } = training;
  const warn = (text: string | null) => text !== null && report({ type: "warning", text });
  warn(await findOverlongPrompts(training, folder, report));
  warn(findUnseenTools(policy, environment, trainRows));
  warn(checkSamples(trainRows, settings, registries));
  const few = describeFewRows(training);
  warn(few && nameOptions(options, few));
}

function describeFewRows({ config, trainRows }: Training): string | null {
  const { train_batch_size: asked } = config.data;
  if (asked <= trainRows.length || config.trainer.val_only) return null;
  return `data.train_batch_size: is ${asked}, and there ${trainRows.length === 1 ? "is 1 row" : `are ${trainRows.length} rows`}: each step takes all of them; add rows, or lower it`;
}
