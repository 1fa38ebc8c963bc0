import { constants, existsSync, statSync } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError } from "@cria/core";
import { type ChecksOf, checkOptions, optionChecks } from "@cria/core/internal";
import { checkRun } from "../checkpoints/open-run.js";
import { nameWeights } from "../checkpoints/save-weights.js";
import { resolvePath } from "../config/paths.js";
import type { SftConfig } from "../config/sft-config.js";
import { type Report, WorkReporter } from "../events.js";
import { LiveTracker } from "../live/live-tracker.js";
import { openActiveRun } from "../run/active-run.js";
import { makeTrackers } from "../trackers/open-trackers.js";
import type { Tracker } from "../trackers/tracker.js";
import { openSft, type SftTraining } from "./open-sft.js";
import { type SftResult, trainConversations } from "./train-conversations.js";

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
  const output = trainer.output_path === null ? null : resolvePath(folder, trainer.output_path);
  if (output) await checkWritable(output);
  await checkRun(config);
  const trackers = options.trackers ?? makeTrackers(config);
  const training = await openReported(config, folder, { report, signal });
  try {
    const { engine } = training;
    const live = new LiveTracker(null);
    const run = await openActiveRun(config, { engine, configFolder: folder, live, trackers, signal, report });
    let failure: { error: unknown } | undefined;
    try {
      const result = await trainConversations(training, run, { signal, report });
      if (output) await saveTo(training, output);
      return { path: run.folder.path, output: output ?? run.folder.file(nameWeights(engine)), ...result };
    } catch (error) {
      failure = { error };
      throw error;
    } finally {
      await run.close(failure);
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
    onWarning: (text) => report?.({ type: "warning", text }),
    onNote: (text) => report?.({ type: "notice", text }),
  });
  reporter.end();
  return training;
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
