import type { Trajectory } from "@cria/core";
import { DataLoader } from "@cria/rollout";
import type { StepMetrics } from "./collect-metrics.js";
import type { RunFolder } from "./run-folder.js";
import type { Session } from "./session.js";
import { runTrainingStep } from "./training-step.js";

export interface TrainingHooks {
  onStep?: (step: number, total: number, metrics: StepMetrics) => void;
  /** After each step, before its metrics are written; what it returns joins them. */
  validate?: (step: number) => Promise<StepMetrics>;
}

/** Steps of a run: config.total_training_steps, or as many as the epochs have. */
export function countSteps(session: Session): number {
  const { trainer, data } = session.config;
  const perEpoch = Math.max(1, Math.floor(session.trainRows.length / data.train_batch_size));
  return trainer.total_training_steps ?? perEpoch * trainer.total_epochs;
}

/** Trains to the end; metrics and trajectories go to the run folder step by step, weights by save_freq and at the end. */
export async function runTraining(
  session: Session,
  folder: RunFolder,
  hooks: TrainingHooks = {},
): Promise<StepMetrics[]> {
  const { data, trainer } = session.config;
  const total = countSteps(session);
  const loader = new DataLoader(session.trainRows, {
    batchSize: Math.min(data.train_batch_size, session.trainRows.length),
    shuffle: data.shuffle,
    seed: data.seed,
  });
  const history: StepMetrics[] = [];
  for (let step = 1; step <= total; step++) {
    const rows = loader.next();
    const { trajectories, metrics } = await runTrainingStep(session, rows, step, loader.epoch, undefined, () =>
      loader.next(),
    );
    if (step === total || (trainer.save_freq > 0 && step % trainer.save_freq === 0)) {
      const started = performance.now();
      await saveWeights(session, folder);
      metrics["timing_s/save_checkpoint"] = (performance.now() - started) / 1000;
    }
    hooks.onStep?.(step, total, metrics);
    Object.assign(metrics, await hooks.validate?.(step));
    history.push(metrics);
    if (trainer.logger.includes("file")) {
      await folder.appendLine("metrics.jsonl", metrics);
      await folder.writeLines(`rollouts/${step}.jsonl`, trajectories.map(describeTrajectory));
    }
  }
  return history;
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
