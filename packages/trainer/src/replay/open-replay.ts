import { resolve } from "node:path";
import { type ChecksOf, checkOptions, optionChecks } from "@cria/core/internal";
import { checkConfig } from "../config/check-config.js";
import { resolveAllPaths } from "../config/paths.js";
import { type TrainConfig, trainConfigSchema } from "../config/train-config.js";
import type { Report } from "../events.js";
import { readRun, type SavedRun } from "../rescore/read-run.js";
import { makeAgentTask } from "../run/agent-task.js";
import { loadHeldOut } from "../run/held-out.js";
import { makeConfig } from "../run/make-config.js";
import type { TrainOptions } from "../run/train-options.js";
import { type OpenTrainingOptions, openTraining } from "../run/training.js";
import { checkModel } from "./check-run.js";
import { Replay } from "./replay.js";
import { RunWeights } from "./run-weights.js";

export interface OpenReplayOptions {
  /** The program's options of `train`, if it trained the run with values in memory: task, held-out rows, loss. */
  train?: TrainOptions;
  report?: Report;
  signal?: AbortSignal;
}

const replayChecks: ChecksOf<Required<OpenReplayOptions>> = {
  train: optionChecks.object,
  report: optionChecks.function,
  signal: optionChecks.signal,
};

/** Implements `openReplay` of when-called.ts. */
export async function openReplay(path: string, options: OpenReplayOptions = {}): Promise<Replay> {
  checkOptions("openReplay", options, replayChecks);
  const { train, report, signal } = options;
  const run = readRun(path);
  const config = makeReplayConfig(run);
  await checkModel(config, run.origin);
  const open = async () => {
    const inMemory = train && (await readInMemory(train, config, run.configFolder));
    return openTraining(config, run.configFolder, { ...inMemory, report, signal });
  };
  const weights = await RunWeights.open(resolve(path), open, report);
  return new Replay({ path, config, origin: run.origin, weights });
}

async function readInMemory(given: TrainOptions, config: TrainConfig, folder: string): Promise<OpenTrainingOptions> {
  const options = makeAgentTask(given);
  const { registries, findsToolFormat } = makeConfig(options);
  return { task: options.task, valRows: await loadHeldOut(options, config, folder), registries, findsToolFormat };
}

/**
 * Checks, without loading anything, that a run's model exists and is the same file.
 * @throws DataError for a folder without a run; ConfigError "replay/no-model", "replay/other-model".
 */
export async function checkReplayModel(path: string): Promise<void> {
  const run = readRun(path);
  await checkModel(makeReplayConfig(run), run.origin);
}

/** The run's config with absolute paths, and the model at its recorded path. */
function makeReplayConfig({ raw, configFolder, origin, path }: SavedRun): TrainConfig {
  const made = structuredClone(raw);
  resolveAllPaths(made, configFolder);
  const config = checkConfig(trainConfigSchema, made, path);
  const { actor_rollout_ref: actor, trainer } = config;
  return {
    ...config,
    actor_rollout_ref: {
      ...actor,
      model: {
        ...actor.model,
        path: origin?.model ?? actor.model.path,
        mmproj: origin?.projector ?? actor.model.mmproj,
      },
    },
    // A replay sends nothing elsewhere.
    trainer: { ...trainer, tracing: "off", val_only: false },
  };
}
