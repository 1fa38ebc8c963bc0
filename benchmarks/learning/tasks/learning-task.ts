import type { Curve } from "../curve.js";
import type { Demonstration } from "./make-policy.js";

/** Runs side by side: what they sample and learn does not follow from what runs beside them, nor from their threads. */
export const AT_ONCE = Number(process.env.CRIA_LEARNING_AT_ONCE ?? 1);

/** A task in which methods are compared. */
export interface LearningTask {
  name: string;
  /** Sampled tokens of each run: GRPO has learned it by half of them, or stands still. */
  tokens: number;
  /** Most steps of a run. */
  steps: number;
  /** Sampled tokens until the first validation; later ones come after ever more. */
  every: number;
  /** Null: it has no teacher. */
  teacher: Teacher | null;
  /** Names of the methods that are tried on it; left out: all that name no tasks. */
  methods?: readonly string[];
  /** Why it cannot be run here; null: it can. Left out: it always can. */
  findMissing?(): Promise<string | null>;
  /** Makes its files, which may take minutes. Returns "key.path=value" of them. */
  prepare(): Promise<readonly string[]>;
  /** Right conversations of training rows, for methods that learn from examples too; left out: it has none. */
  examples?(count: number): Demonstration[] | Promise<Demonstration[]>;
  /** Trains until the first point behind `tokens`, or for `steps`. */
  learn(options: LearnOptions): Promise<Curve>;
}

/** The way in which a task's teacher learns it: by steps of GRPO with larger groups, or as `write` makes the adapter. */
export type Teacher = { steps: number } | { write(adapter: string): Promise<void> };

export interface LearnOptions {
  /** The folder of the run folders. */
  folder: string;
  seed: number;
  /** As a task says them. */
  tokens: number;
  steps: number;
  every: number;
  /** "key.path=value", of the task's config. */
  overrides: readonly string[];
  /** The file for the trained adapter; left out: none is written. */
  adapter?: string;
}
