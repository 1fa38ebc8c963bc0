import type { Trajectory } from "@cria/core";
import { averageExtras, runRollouts } from "@cria/rollout";
import type { StepMetrics } from "./collect-metrics.js";
import type { Session } from "./session.js";

export interface Validation {
  /** Mean reward of the trajectories. */
  success: number;
  /** By their names in the field: `val-core/<data_source>/<acc or reward>/mean@<n>`. */
  metrics: StepMetrics;
  trajectories: Trajectory[];
  seconds: number;
  tokens: number;
}

export interface ValidateOptions {
  temperature: number;
  topP?: number;
  n?: number;
  /** Separates the random draws of validations. */
  step: number;
  onTrajectory?: (trajectory: Trajectory) => void;
}

/** Rolls out the held-out rows. Success is what the reward function gave, without step rewards. */
export async function validate(session: Session, options: ValidateOptions): Promise<Validation> {
  const started = performance.now();
  const trajectories = await runRollouts(session.engine, session.valRows, {
    ...session.rollout,
    n: options.n ?? 1,
    temperature: options.temperature,
    topP: options.topP ?? 1,
    topK: 0,
    // Validations draw alike for every training seed, so that runs can be compared.
    seed: 42,
    step: options.step,
    onTrajectory: options.onTrajectory,
  });
  session.rollout.signal?.throwIfAborted();
  const scores = trajectories.map((t) => t.extraFields.score as number);
  return {
    success: scores.reduce((a, b) => a + b, 0) / Math.max(1, scores.length),
    metrics: averageBySource(trajectories, options.n ?? 1),
    trajectories,
    seconds: (performance.now() - started) / 1000,
    tokens: trajectories.reduce((sum, t) => sum + t.tokenIds.length - t.promptLength, 0),
  };
}

/** Accuracy where the reward function reports one ("acc"), else the reward itself. */
function averageBySource(trajectories: readonly Trajectory[], n: number): StepMetrics {
  const sums = new Map<string, { sum: number; count: number }>();
  for (const { dataSource, extraFields, reward } of trajectories) {
    const accuracy = extraFields.acc;
    const isAccuracy = typeof accuracy === "number" || typeof accuracy === "boolean";
    const name = `val-core/${dataSource}/${isAccuracy ? "acc" : "reward"}/mean@${n}`;
    const entry = sums.get(name) ?? { sum: 0, count: 0 };
    entry.sum += isAccuracy ? Number(accuracy) : reward;
    entry.count++;
    sums.set(name, entry);
  }
  const metrics = Object.fromEntries([...sums].map(([name, { sum, count }]) => [name, sum / count]));
  for (const source of new Set(trajectories.map((t) => t.dataSource))) {
    const { acc: _, ...extras } = averageExtras(trajectories.filter((t) => t.dataSource === source));
    for (const [key, value] of Object.entries(extras)) metrics[`val-aux/${source}/${key}/mean@${n}`] = value;
  }
  return metrics;
}
