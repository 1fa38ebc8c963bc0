import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeAtomically } from "../checkpoints/run-folder.js";
import type { TrainConfig } from "../config/train-config.js";
import type { Generation } from "./generation.js";
import { MlflowTracker } from "./mlflow-tracker.js";
import { QueuedTracker, type QueueOptions } from "./queued-tracker.js";
import { TensorboardTracker } from "./tensorboard-tracker.js";
import type { RunStatus, Tracker } from "./tracker.js";
import { WandbTracker } from "./wandb-tracker.js";

/** All trackers of a run. */
export interface Trackers {
  /** Returns at once, and never throws. */
  log(step: number, metrics: Readonly<Record<string, number>>, generations?: readonly Generation[]): void;
  finish(status: RunStatus): Promise<void>;
}

const makers: Record<string, (env: NodeJS.ProcessEnv) => Tracker> = {
  tensorboard: () => new TensorboardTracker(),
  mlflow: (env) => new MlflowTracker(env),
  wandb: (env) => new WandbTracker(env),
};

/** The part of a config that names trackers and the run. */
export interface TrackedConfig {
  trainer: Pick<TrainConfig["trainer"], "logger" | "project_name" | "experiment_name">;
}

export interface OpenTrackersOptions {
  /** The run folder. */
  folder: string;
  /** The step that training resumes from; null: it starts from the beginning. */
  resumedStep: number | null;
  warn: (text: string) => void;
  queue?: Partial<QueueOptions>;
}

/**
 * Makes the trackers that `trainer.logger` names, except console and file. @throws ConfigError when a tracker lacks
 * address or key.
 */
export function makeTrackers(config: TrackedConfig, env: NodeJS.ProcessEnv = process.env): Tracker[] {
  return [...new Set(config.trainer.logger)].flatMap((name) => makers[name]?.(env) ?? []);
}

/**
 * Starts the trackers in the background. `trackers.json` keeps the ids of their runs, so that a resumed run
 * continues them.
 */
export async function startTrackers(
  trackers: readonly Tracker[],
  config: TrackedConfig,
  { folder, resumedStep, warn, queue }: OpenTrackersOptions,
): Promise<Trackers> {
  const file = join(folder, "trackers.json");
  const saved = await readSaved(file);
  let writing = Promise.resolve();
  const save = (name: string, value: unknown) => {
    if (value === null) return;
    saved[name] = value;
    // One after another, because they share the file.
    writing = writing.catch(() => undefined).then(() => writeAtomically(file, `${JSON.stringify(saved, null, 2)}\n`));
    return writing;
  };
  const queued = trackers.map(
    (tracker) =>
      new QueuedTracker(
        tracker,
        {
          project: config.trainer.project_name,
          experiment: config.trainer.experiment_name,
          folder,
          config: { ...config },
          resumedStep,
          saved: saved[tracker.name] ?? null,
        },
        warn,
        (value) => save(tracker.name, value),
        queue,
      ),
  );
  return {
    log: (step, metrics, generations) => {
      for (const tracker of queued) tracker.log(step, metrics, generations);
    },
    finish: async (status) => {
      await Promise.all(queued.map((tracker) => tracker.finish(status)));
    },
  };
}

async function readSaved(file: string): Promise<Record<string, unknown>> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
  } catch {
    // Missing or unreadable: the trackers begin new runs.
    return {};
  }
}
