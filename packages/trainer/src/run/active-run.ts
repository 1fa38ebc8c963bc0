import type { PolicyEngine } from "@cria/core";
import { type OpenedRun, openRun, type RunConfig } from "../checkpoints/open-run.js";
import { forgetEnd, recordEnd } from "../checkpoints/run-end.js";
import { makeSay, type Report } from "../events.js";
import type { LiveTracker } from "../live/live-tracker.js";
import { LiveWriter } from "../live/live-writer.js";
import { startTrackers, type TrackedConfig, type Trackers } from "../trackers/open-trackers.js";
import type { Tracker } from "../trackers/tracker.js";

/** The folder of a run, and where it starts. A caller's folder may have no checkpoints. */
type RunPlace = Pick<OpenedRun, "folder" | "resume"> & Partial<Pick<OpenedRun, "checkpoints">>;

/** A run of `cria train` or `cria sft` while it trains: its folder, and the recipients of its progress. */
export interface ActiveRun extends RunPlace {
  trackers: Trackers;
  live: LiveTracker;
  /** Records how the run ended, and closes it. @param failure what ended its work; left out: the work is done. */
  close(failure?: { error: unknown }): Promise<void>;
}

export interface OpenActiveRunOptions {
  /** The trained engine, and the base of the config's relative paths, which `run.json` names. */
  engine: Pick<PolicyEngine, "info" | "images">;
  configFolder: string;
  live: LiveTracker;
  trackers?: readonly Tracker[];
  signal?: AbortSignal;
  report?: Report;
  /** The caller's folder; default: the one that the config names, opened as it says. */
  place?: RunPlace;
}

/** Opens the folder of a run, and starts its trackers. @throws the errors of `openRun` */
export async function openActiveRun(
  config: RunConfig & TrackedConfig,
  { engine, configFolder, live, trackers: given = [], signal, report, place }: OpenActiveRunOptions,
): Promise<ActiveRun> {
  const say = makeSay(report);
  const opened = place ? { ...place, close: () => undefined } : await openRun(config, say);
  const { folder, resume } = opened;
  let trackers: Trackers | undefined;
  let writer: LiveWriter | undefined;
  const close: ActiveRun["close"] = async (failure) => {
    try {
      await trackers?.finish(!failure ? "finished" : signal?.aborted ? "interrupted" : "failed");
      await writer?.close();
      await recordEnd(folder, signal, failure);
    } finally {
      opened.close();
    }
  };
  try {
    await forgetEnd(folder);
    await folder.writeOrigin(engine, configFolder);
    const resumedStep = resume?.step ?? null;
    trackers = await startTrackers(given, config, { folder: folder.path, resumedStep, warn: say });
    if (config.trainer.logger.includes("file")) writer = new LiveWriter(folder.path, live);
    return { ...opened, trackers, live, close };
  } catch (error) {
    await close({ error });
    throw error;
  }
}
