import type { Generation } from "./generation.js";

/** What a tracker gets to know about the run when it starts. */
export interface TrackedRun {
  project: string;
  experiment: string;
  /** The run folder. */
  folder: string;
  /** The resolved config. */
  config: Record<string, unknown>;
  /** The step that training goes on from; null: it starts from the beginning. */
  resumedStep: number | null;
  /** What this tracker returned from `start` when the run began; null the first time. */
  saved: unknown;
}

export interface TrackedStep {
  step: number;
  /** Milliseconds since 1970. */
  time: number;
  metrics: Readonly<Record<string, number>>;
  /** Of the step's validation, with `trainer.log_val_generations`. */
  generations?: readonly Generation[];
}

export type RunStatus = "finished" | "failed" | "interrupted";

/**
 * Sends metrics somewhere. It may fail, hang or be slow: `QueuedTracker` keeps that away from training. Calls never
 * overlap; each has a signal that ends it when its time is up.
 */
export interface Tracker {
  readonly name: string;
  /** Returns plain JSON by which a resumed run finds its place again; it comes back as `saved`. */
  start(run: TrackedRun, signal: AbortSignal): Promise<unknown>;
  /**
   * In the order of steps, at least one. Metrics are finite numbers. @throws GenerationsError when only the generations
   * are lost.
   */
  log(steps: readonly TrackedStep[], signal: AbortSignal): Promise<void>;
  finish(status: RunStatus, signal: AbortSignal): Promise<void>;
}
