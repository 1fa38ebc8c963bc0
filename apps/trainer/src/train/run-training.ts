import { join } from "node:path";
import { hasFailed, type Trajectory } from "@cria/core";
import { DataLoader, type DataLoaderPlace, type DataLoaderState, type DatasetRow } from "@cria/rollout";
import type { Checkpoint, CheckpointStore, PendingCheckpoint, TrainingState } from "../checkpoints/checkpoint-store.js";
import { restoreEngines } from "../checkpoints/checkpoint-store.js";
import type { StepMetrics } from "./collect-metrics.js";
import { countSteps } from "./count-steps.js";
import { profileStep } from "./profile-step.js";
import { type RunFolder, writeLines } from "./run-folder.js";
import { SavePoints } from "./save-points.js";
import type { Session } from "./session-type.js";
import { TrainingInterrupted } from "./training-interrupted.js";
import { runTrainingStep, type StepResult } from "./training-step.js";

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
  /** Metrics of a step whose validation was interrupted: it is made up for when the run goes on. */
  unvalidated?: StepMetrics;
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
  const { signal } = session.rollout;
  const total = countSteps(session);
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
  const saves = new SavePoints({
    saveFreq: trainer.save_freq,
    saveMinutes: trainer.save_minutes,
    total,
    checkpoints,
    resume,
    saveWeights: () => saveWeights(session, folder),
  });
  const history: StepMetrics[] = [];
  const mark = (step: number): LoopState => ({
    step,
    loader: loader.place,
    klController: session.klController.save(),
  });
  const describe = (at: LoopState, unvalidated?: StepMetrics) => describeState(session, loader, at, unvalidated);
  const stop = async (at: LoopState, lost: string | null, unvalidated?: StepMetrics) => {
    const checkpoint = await saves.saveLast(describe(at, unvalidated));
    return new TrainingInterrupted({ step: at.step, total, checkpoint, lost }, { cause: signal?.reason });
  };
  const isInterrupted = (error: unknown) => signal?.aborted === true && error === signal.reason;
  const record = async (step: number, metrics: StepMetrics) => {
    history.push(metrics);
    if (trainer.logger.includes("file")) await folder.appendLine("metrics.jsonl", metrics);
    hooks.onMetrics?.(step, metrics);
  };

  let done = mark(resume?.step ?? 0);
  if (resumed?.unvalidated) {
    const metrics = { ...resumed.unvalidated };
    try {
      Object.assign(metrics, await hooks.validate?.(done.step));
    } catch (error) {
      throw isInterrupted(error) ? await stop(done, null, resumed.unvalidated) : error;
    }
    await record(done.step, metrics);
    await (await saves.prepare(describe(done), saves.isDue(done.step) ?? "interim"))?.commit();
  }
  for (let step = done.step + 1; step <= total; step++) {
    if (signal?.aborted) throw await stop(done, null);
    const rows = loader.next();
    const take = () => runTrainingStep(session, rows, step, loader.epoch, undefined, () => loader.next());
    const profiled = trainer.profile_steps?.includes(step);
    let result: StepResult;
    try {
      result = await (profiled ? profileStep(folder.file("profiles", `${step}.cpuprofile`), take) : take());
    } catch (error) {
      // Aborted before its update: nothing of this step has changed the engines.
      throw isInterrupted(error) ? await stop(done, `the rollouts of step ${step}`) : error;
    }
    const { trajectories, metrics } = result;
    done = mark(step);
    const due = saves.isDue(step);
    let pending: PendingCheckpoint | undefined;
    if (due) {
      const started = performance.now();
      pending = await saves.prepare(describe(done), due);
      metrics["timing_s/save_checkpoint"] = (performance.now() - started) / 1000;
    }
    try {
      hooks.onStep?.(step, total, metrics);
      if (trainer.logger.includes("file") || trainer.rollout_data_dir) {
        const rollouts = trainer.rollout_data_dir ?? folder.file("rollouts");
        await writeLines(join(rollouts, `${step}.jsonl`), trajectories.map(describeTrajectory));
      }
      const validated = { ...metrics, ...(await hooks.validate?.(step)) };
      await record(step, validated);
    } catch (error) {
      await pending?.discard();
      throw isInterrupted(error) ? await stop(done, `the validation after step ${step}`, metrics) : error;
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

function describeState(
  session: Session,
  loader: DataLoader<DatasetRow>,
  { step, loader: place, klController }: LoopState,
  unvalidated?: StepMetrics,
): TrainingState {
  const { config } = session;
  const data: ResumedData = { loader: loader.save(place), kl_controller: klController };
  if (unvalidated) data.unvalidated = unvalidated;
  return {
    step,
    engines: listEngines(session),
    data,
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
  const { rewards } = trajectory;
  const failed = hasFailed(trajectory);
  return {
    uid: trajectory.uid,
    sample: trajectory.sampleIndex,
    data_source: trajectory.dataSource,
    // A failed conversation has no reward, which is not a reward of 0.
    reward: failed ? null : trajectory.reward,
    score: rewards.score,
    success: rewards.success,
    rewards: {
      outcome: rewards.outcome,
      length: rewards.length,
      tools: rewards.tools,
      turns: rewards.turns,
      tool_score: rewards.toolScore,
      interaction_score: rewards.interactionScore,
    },
    extra: trajectory.extraFields,
    error: trajectory.error ?? null,
    finish_reason: trajectory.finishReason,
    num_turns: trajectory.numTurns,
    messages: trajectory.messages,
    prompt_length: trajectory.promptLength,
    token_ids: [...trajectory.tokenIds],
    response_mask: [...trajectory.responseMask],
    token_level_rewards: [...rewards.tokenLevel],
    rollout_logprobs: [...trajectory.rolloutLogprobs].map((x) => Number(x.toFixed(6))),
    metrics: trajectory.metrics,
  };
}
