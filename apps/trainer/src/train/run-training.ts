import { join } from "node:path";
import type { Trajectory } from "@cria/core";
import { DataLoader, type DataLoaderState, type DatasetRow } from "@cria/rollout";
import type { Checkpoint, CheckpointStore, PendingCheckpoint, TrainingState } from "../checkpoints/checkpoint-store.js";
import { restoreEngines } from "../checkpoints/checkpoint-store.js";
import type { StepMetrics } from "./collect-metrics.js";
import { countSteps } from "./count-steps.js";
import { profileStep } from "./profile-step.js";
import { type RunFolder, writeLines } from "./run-folder.js";
import type { Session } from "./session-type.js";
import { runTrainingStep } from "./training-step.js";

export interface TrainingHooks {
  onStep?: (step: number, total: number, metrics: StepMetrics) => void;
  /** After each step, before its metrics are written; what it returns joins them. */
  validate?: (step: number) => Promise<StepMetrics>;
  /** Told of every step's metrics, validation included. */
  onMetrics?: (step: number, metrics: StepMetrics) => void;
  /** Where the whole state goes, by save_freq and at the end. Without it only the weights are saved. */
  checkpoints?: CheckpointStore;
  /** A state to go on from. */
  resume?: Checkpoint | null;
}

/** A checkpoint's data.json. */
interface ResumedData {
  loader: DataLoaderState;
  kl_controller: { coefficient: number };
}

/**
 * Trains to the end; metrics and trajectories go to the run folder step by step, state and weights by save_freq and at the
 * end. With `rollout.deterministic` a resumed run computes what an uninterrupted one does.
 * @returns the metrics of the steps taken here; none when the resumed run was complete.
 */
export async function runTraining(
  session: Session,
  folder: RunFolder,
  hooks: TrainingHooks = {},
): Promise<StepMetrics[]> {
  const { data, trainer } = session.config;
  const { checkpoints, resume } = hooks;
  const total = countSteps(session);
  const loader = new DataLoader(session.trainRows, {
    batchSize: Math.min(data.train_batch_size, session.trainRows.length),
    shuffle: data.shuffle,
    seed: data.seed,
  });
  if (resume) {
    const data = resume.data as ResumedData;
    loader.restore(data.loader);
    session.klController.restore(data.kl_controller);
    await restoreEngines(resume, listEngines(session));
  }
  const history: StepMetrics[] = [];
  for (let step = (resume?.step ?? 0) + 1; step <= total; step++) {
    const rows = loader.next();
    const take = () => runTrainingStep(session, rows, step, loader.epoch, undefined, () => loader.next());
    const profiled = trainer.profile_steps?.includes(step);
    const { trajectories, metrics } = await (profiled
      ? profileStep(folder.file("profiles", `${step}.cpuprofile`), take)
      : take());
    let pending: PendingCheckpoint | undefined;
    if (step === total || (trainer.save_freq > 0 && step % trainer.save_freq === 0)) {
      const started = performance.now();
      await saveWeights(session, folder);
      pending = await checkpoints?.prepare(describeState(session, loader, step));
      metrics["timing_s/save_checkpoint"] = (performance.now() - started) / 1000;
    }
    try {
      hooks.onStep?.(step, total, metrics);
      Object.assign(metrics, await hooks.validate?.(step));
      history.push(metrics);
      if (trainer.logger.includes("file") || trainer.rollout_data_dir) {
        const rollouts = trainer.rollout_data_dir ?? folder.file("rollouts");
        await writeLines(join(rollouts, `${step}.jsonl`), trajectories.map(describeTrajectory));
      }
      if (trainer.logger.includes("file")) await folder.appendLine("metrics.jsonl", metrics);
      hooks.onMetrics?.(step, metrics);
    } catch (error) {
      await pending?.discard();
      throw error;
    }
    // Last: a checkpoint that has its name has its metrics too, and a resumed run forgets only what it computes again.
    await pending?.commit();
  }
  return history;
}

/** What a checkpoint holds of a session, by name. */
export function listEngines(session: Session): Record<string, object> {
  return { actor: session.engine, ...(session.critic ? { critic: session.critic.engine } : {}) };
}

function describeState(session: Session, loader: DataLoader<DatasetRow>, step: number): TrainingState {
  const { config } = session;
  return {
    step,
    engines: listEngines(session),
    data: { loader: loader.save(), kl_controller: session.klController.save() } satisfies ResumedData,
    // No generator runs through a training: every draw is made from a hash of seed, step, row and sample.
    rng: { rollout_seed: config.actor_rollout_ref.rollout.seed, data_seed: config.data.seed, step },
  };
}

/** The trained weights: adapter.gguf with LoRA, model.gguf with full training. Returns the file. */
export async function saveWeights(session: Session, folder: RunFolder): Promise<string> {
  const lora = session.engine.info.trainable === "lora";
  const file = folder.file(lora ? "adapter.gguf" : "model.gguf");
  await (lora ? session.engine.saveAdapter(file) : session.engine.saveModel(file));
  return file;
}

/** A trajectory as one line of a dump. */
export function describeTrajectory(trajectory: Trajectory): Record<string, unknown> {
  const { score, transitions: _, ...extra } = trajectory.extraFields;
  return {
    uid: trajectory.uid,
    sample: trajectory.sampleIndex,
    data_source: trajectory.dataSource,
    reward: trajectory.reward,
    score,
    extra,
    finish_reason: trajectory.finishReason,
    num_turns: trajectory.numTurns,
    messages: trajectory.messages,
    prompt_length: trajectory.promptLength,
    token_ids: [...trajectory.tokenIds],
    response_mask: [...trajectory.responseMask],
    rollout_logprobs: [...trajectory.rolloutLogprobs].map((x) => Number(x.toFixed(6))),
    metrics: trajectory.metrics,
  };
}
