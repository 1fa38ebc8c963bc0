import { hasFailed, type SamplingOptions, type Trajectory } from "@cria/core";
import type { DatasetRow, OnRequestState } from "@cria/rollout";
import { makeAllFailedError } from "@cria/rollout/internal";
import type { Coordination } from "../cluster/training-bus.js";
import type { Policy } from "../policy/policy.js";
import { averageLoopMetrics } from "../step/loop-metrics.js";
import { rollOut } from "../step/roll-out.js";
import type { StepMetrics } from "../step-metrics.js";
import type { Environment } from "../task/environment.js";
import { makeValidationMetrics } from "./validation-metrics.js";

export interface Validation {
  /** Mean score of the conversations that did not fail; null if all failed. */
  success: number | null;
  /** Metrics under verl's names: `val-core/<data_source>/<acc or reward>/mean@<n>`, ... */
  metrics: StepMetrics;
  /** Number of conversations that failed or could not be judged; left out of the metrics. */
  failed: number;
  trajectories: Trajectory[];
  seconds: number;
  tokens: number;
}

export interface ValidateOptions extends Omit<SamplingOptions, "seed"> {
  temperature: number;
  n?: number;
  /** Step number; separates the random draws of validations. */
  step: number;
  onTrajectory?: (trajectory: Trajectory) => void;
  /** Called with each state that a conversation enters. */
  onState?: OnRequestState;
}

/** The parts of a training that a validation uses. */
export interface ValidationParts {
  policy: Policy;
  environment: Environment;
  /** Held-out rows. */
  valRows: readonly DatasetRow[];
  /** Hands out conversations; null: all run in this process. */
  coordination: Coordination | null;
  signal?: AbortSignal;
}

/** Validations draw the same for every training seed, so that runs can be compared. */
export const VALIDATION_SEED = 42;

/** Implements `validate` of when-called.ts. */
export async function validate(
  { policy, environment, valRows, coordination, signal }: ValidationParts,
  options: ValidateOptions,
): Promise<Validation> {
  const started = performance.now();
  const converse = await coordination?.converseBy(policy);
  const { trajectories: judged } = rollOut(policy, environment, valRows, {
    ...options,
    n: options.n ?? 1,
    seed: VALIDATION_SEED,
    signal,
    converse,
  });
  const trajectories = await judged;
  const scores = trajectories.flatMap(({ rewards }) => rewards.score ?? []);
  return {
    success: scores.length > 0 ? scores.reduce((a, b) => a + b, 0) / scores.length : null,
    failed: trajectories.filter(hasFailed).length,
    metrics: { ...makeValidationMetrics(trajectories), ...makeLoopMetrics(trajectories) },
    trajectories,
    seconds: (performance.now() - started) / 1000,
    tokens: trajectories.reduce((sum, t) => sum + t.tokenIds.length - t.promptLength, 0),
  };
}

/**
 * Success of a validation whose result is required. (A validation between training steps may fail without ending the
 * training.)
 * @param subject name of the validation, for the error.
 * @throws ToolError when every conversation failed.
 */
export function readSuccess({ success, trajectories }: Validation, subject: string): number {
  if (success === null) throw makeAllFailedError(subject, trajectories);
  return success;
}

/** Counters of all conversations, failed ones included, as `val-aux/...`. */
function makeLoopMetrics(trajectories: readonly Trajectory[]): StepMetrics {
  if (trajectories.length === 0) return {};
  const turns = trajectories.map((t) => t.numTurns);
  const metrics = {
    "num_turns/mean": turns.reduce((a, b) => a + b) / turns.length,
    "num_turns/max": turns.reduce((a, b) => Math.max(a, b)),
    "num_turns/min": turns.reduce((a, b) => Math.min(a, b)),
    ...averageLoopMetrics(trajectories),
  };
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`val-aux/${name}`, value]));
}
