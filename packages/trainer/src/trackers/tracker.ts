import type { Generation } from "./generation.js";

/** Information about the run for a starting tracker. */
export interface TrackedRun {
  project: string;
  experiment: string;
  /** The run folder. */
  folder: string;
  /** The resolved config. */
  config: Record<string, unknown>;
  /** The step that training resumes from; null: it starts from the beginning. */
  resumedStep: number | null;
  /** Result of this tracker's `start` when the run began; null the first time. */
  saved: unknown;
}

export interface TrackedStep {
  step: number;
  /** Milliseconds since 1970. */
  time: number;
  metrics: Readonly<Record<string, number>>;
  /** Conversations of the step's validation, with `trainer.log_val_generations`. */
  generations?: readonly Generation[];
}

export type RunStatus = "finished" | "failed" | "interrupted";

/**
 * Sends metrics to a service. It may fail, hang or be slow: `QueuedTracker` keeps that away from training. Calls
 * never overlap; each has a signal that aborts at its time limit.
 */
export interface Tracker {
  readonly name: string;
  /** Returns plain JSON that identifies the run; a resumed run gets it back as `saved`. */
  start(run: TrackedRun, signal: AbortSignal): Promise<unknown>;
  /**
   * Sends metrics of at least one step, in step order. Metrics are finite numbers. @throws GenerationsError when
   * only the generations are lost.
   */
  log(steps: readonly TrackedStep[], signal: AbortSignal): Promise<void>;
  finish(status: RunStatus, signal: AbortSignal): Promise<void>;
}
