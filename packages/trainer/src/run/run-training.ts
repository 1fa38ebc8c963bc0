import { Session as Inspector } from "node:inspector/promises";
import { join } from "node:path";
import type { PolicyEngine } from "@cria/core";
import { DataLoader, type DataLoaderPlace, type DataLoaderState, type DatasetRow } from "@cria/rollout";
import {
  type Checkpoint,
  type CheckpointStore,
  restoreEngines,
  type Unvalidated,
} from "../checkpoints/checkpoint-store.js";
import { type RunFolder, writeAtomically, writeLines } from "../checkpoints/run-folder.js";
import { SavePoints } from "../checkpoints/save-points.js";
import { countSteps } from "../step/learning-rate.js";
import { runTrainingStep, type StepResult } from "../step/training-step.js";
import type { StepMetrics } from "../step-metrics.js";
import { dumpTrajectories } from "../validation/dump-trajectories.js";
import { runSteps } from "./run-steps.js";
import type { Session } from "./session.js";

export interface TrainingHooks {
  onStep?: (step: number, total: number, metrics: StepMetrics) => void;
  /** After each step, before its metrics are written; what it returns joins them. */
  validate?: (step: number) => Promise<StepMetrics>;
  /** Told of every step's metrics, validation included. */
  onMetrics?: (step: number, metrics: StepMetrics) => void | Promise<void>;
  /** Where the whole state goes, by save_freq and at the end. Without it only the weights are saved. */
  checkpoints?: CheckpointStore;
  /** Whether the run is to end after the step that it takes; what was done is saved then. */
  isStopping?: () => boolean;
  /** A state to go on from. */
  resume?: Checkpoint | null;
}

/** A checkpoint's data.json. */
interface ResumedData extends Unvalidated {
  loader: DataLoaderState;
  kl_controller: { coefficient: number };
}

/** What changes from step to step beside the engines. */
interface LoopState {
  step: number;
  loader: DataLoaderPlace;
  klController: { coefficient: number };
}

/**
 * Trains to the end; metrics and trajectories go to the run folder step by step, state and weights by save_freq,
 * save_minutes and at the end. With `rollout.deterministic` a resumed run computes what an uninterrupted one does.
 * When the session's signal aborts, rollouts, scoring and validation end at once, an update or a save only when it is
 * finished; the last finished step is then saved.
 * @returns the metrics of the steps taken here; none when the resumed run was complete.
 * @throws TrainingInterrupted when the session's signal aborted.
 */
export async function runTraining(
  session: Session,
  folder: RunFolder,
  hooks: TrainingHooks = {},
): Promise<StepMetrics[]> {
  const { data, trainer } = session.config;
  const { checkpoints, resume } = hooks;
  const total = countSteps(session.config, session.trainRows.length);
  const loader = new DataLoader(session.trainRows, {
    batchSize: Math.min(data.train_batch_size, session.trainRows.length),
    shuffle: data.shuffle,
    seed: data.seed,
  });
  const resumed = (resume?.data ?? null) as ResumedData | null;
  if (resume && resumed) {
    loader.restore(resumed.loader);
    session.klController.restore(resumed.kl_controller);
    await restoreEngines(resume, listEngines(session));
  }
  /** Of the last step. */
  let rolledOut: Pick<StepResult, "trajectories" | "advantages"> = { trajectories: [], advantages: [] };
  return runSteps<LoopState>({
    start: resume?.step ?? 0,
    total,
    signal: session.signal,
    isStopping: hooks.isStopping,
    saves: new SavePoints({
      saveFreq: trainer.save_freq,
      saveMinutes: trainer.save_minutes,
      total,
      checkpoints,
      resume,
      saveWeights: () => saveWeights(session.policy.engine, folder),
    }),
    mark: (step) => ({ step, loader: loader.place, klController: session.klController.save() }),
    describe: (place) => describeState(session, loader, place),
    take: async (step) => {
      const rows = loader.next();
      const take = () => runTrainingStep(session, { rows, step, epoch: loader.epoch, nextRows: () => loader.next() });
      const profiled = trainer.profile_steps?.includes(step);
      const result = await (profiled ? profileStep(folder.file("profiles", `${step}.cpuprofile`), take) : take());
      rolledOut = result;
      return result.metrics;
    },
    nameWork: (step) => `the rollouts of step ${step}`,
    onStep: async (step, metrics) => {
      hooks.onStep?.(step, total, metrics);
      if (trainer.logger.includes("file") || trainer.rollout_data_dir) {
        const rollouts = trainer.rollout_data_dir ?? folder.file("rollouts");
        const { trajectories, advantages } = rolledOut;
        const lines = dumpTrajectories(session.policy.engine, session.environment, trajectories, {
          step,
          rows: session.trainRows,
          advantages,
        });
        await writeLines(join(rollouts, `${step}.jsonl`), lines);
      }
    },
    validate: hooks.validate,
    record: async (step, metrics) => {
      if (trainer.logger.includes("file")) await folder.appendLine("metrics.jsonl", metrics);
      await hooks.onMetrics?.(step, metrics);
    },
    unvalidated: resumed?.unvalidated,
  });
}

/** What a checkpoint holds of a session, by name. */
export function listEngines(session: Session): Record<string, object> {
  return { actor: session.policy.engine, ...(session.critic ? { critic: session.critic.engine } : {}) };
}

function describeState(
  session: Session,
  loader: DataLoader<DatasetRow>,
  { step, loader: place, klController }: LoopState,
) {
  const { config } = session;
  const data: ResumedData = { loader: loader.save(place), kl_controller: klController };
  return {
    engines: listEngines(session),
    data,
    // No generator runs through a training: every draw is made from a hash of seed, step, row and sample.
    rng: { rollout_seed: config.actor_rollout_ref.rollout.seed, data_seed: config.data.seed, step },
  };
}

/** The file of a run's trained weights, in its folder. */
export function nameWeights({ info }: Pick<PolicyEngine, "info">): string {
  return info.trainable === "lora" ? "adapter.gguf" : "model.gguf";
}

/** The trained weights: adapter.gguf with LoRA, model.gguf with full training. Returns the file. */
export async function saveWeights(
  engine: Pick<PolicyEngine, "info" | "saveAdapter" | "saveModel">,
  folder: RunFolder,
): Promise<string> {
  const lora = engine.info.trainable === "lora";
  const file = folder.file(nameWeights(engine));
  await (lora ? engine.saveAdapter(file) : engine.saveModel(file));
  return file;
}

/** Runs work under V8's CPU profiler and writes what it saw; Chrome's developer tools and speedscope open the file. */
async function profileStep<T>(file: string, work: () => Promise<T>): Promise<T> {
  const session = new Inspector();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    const result = await work();
    const { profile } = await session.post("Profiler.stop");
    await writeAtomically(file, JSON.stringify(profile));
    return result;
  } finally {
    session.disconnect();
  }
}
