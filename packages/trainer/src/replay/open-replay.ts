import { resolve } from "node:path";
import type { DatasetRow } from "@cria/rollout";
import { checkConfig } from "../config/check-config.js";
import { resolveAllPaths } from "../config/paths.js";
import { type TrainConfig, trainConfigSchema } from "../config/train-config.js";
import type { Report } from "../events.js";
import { readRun, type SavedRun } from "../rescore/read-run.js";
import { openSession, type SessionOptions } from "../run/session.js";
import { checkModel } from "./check-run.js";
import { Replay } from "./replay.js";
import { RunWeights } from "./run-weights.js";

export interface OpenReplayOptions {
  /** What the program that trained the run gave in memory: its task, and its held-out rows. */
  task?: SessionOptions["task"];
  valRows?: readonly DatasetRow[];
  /** A ready engine instead of the run's model, for tests. */
  engine?: SessionOptions["engine"];
  report?: Report;
  signal?: AbortSignal;
}

/**
 * Opens a run of `cria train` to hold its conversations again: its model, data, tools and rewards are loaded. The run folder is only
 * read, also while the run trains.
 * @param path the run folder.
 * @throws DataError when it is none; ConfigError "replay/..." for a run that cannot be replayed; what opening a session throws.
 */
export async function openReplay(path: string, options: OpenReplayOptions = {}): Promise<Replay> {
  const run = readRun(path);
  const config = makeReplayConfig(run);
  await checkModel(config, run.origin);
  const { report, ...given } = options;
  const open = () => openSession(config, run.configFolder, { ...given, report });
  const weights = await RunWeights.open(resolve(path), open, report);
  return new Replay({ path, config, origin: run.origin, weights });
}

/**
 * Checks, without loading anything, that a run's model is there and is the one that it had.
 * @throws DataError for a folder of no run; ConfigError "replay/no-model", "replay/other-model".
 */
export async function checkReplayModel(path: string): Promise<void> {
  const run = readRun(path);
  await checkModel(makeReplayConfig(run), run.origin);
}

/** The run's config, its paths absolute, its model where the run had it. */
function makeReplayConfig({ raw, configFolder, origin, path }: SavedRun): TrainConfig {
  const made = structuredClone(raw);
  resolveAllPaths(made, configFolder);
  const config = checkConfig(trainConfigSchema, made, path);
  const { actor_rollout_ref: actor, trainer } = config;
  return {
    ...config,
    actor_rollout_ref: { ...actor, model: { ...actor.model, path: origin?.model ?? actor.model.path } },
    // Nothing of a replay goes elsewhere.
    trainer: { ...trainer, tracing: "off", val_only: false },
  };
}
