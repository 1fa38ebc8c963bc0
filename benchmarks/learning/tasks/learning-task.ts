import type { Demonstration } from "./make-policy.js";

/** A task in which methods are compared. */
export interface LearningTask {
  name: string;
  /** Steps of each method: GRPO is half-way then, or stands still. */
  steps: number;
  /** Steps between validations; left out: as for all. */
  every?: number;
  /** Steps with larger groups by which the teacher learns the task; null: it has no teacher. */
  teacherSteps: number | null;
  /** Names of the methods that are tried on it; left out: all that name no tasks. */
  methods?: readonly string[];
  /** Why it cannot be run here; null: it can. Left out: it always can. */
  findMissing?(): Promise<string | null>;
  /** Makes its files, which may take minutes. Returns "key.path=value" of them. */
  prepare(): Promise<readonly string[]>;
  /** Right conversations of training rows, for methods that learn from examples too; left out: it has none. */
  examples?(count: number): Demonstration[] | Promise<Demonstration[]>;
  learn(options: LearnOptions): Promise<Learned>;
}

export interface LearnOptions {
  /** The folder of the run folders. */
  folder: string;
  seed: number;
  steps: number;
  /** "key.path=value", of the task's config. */
  overrides: readonly string[];
  /** Steps between validations. */
  every: number;
  /** The file for the trained adapter; left out: none is written. */
  adapter?: string;
}

export interface Learned {
  /** Share of the held-out rows that are solved after so many sampled tokens. */
  points: { tokens: number; success: number }[];
  /** Duration of the steps, without validations. */
  seconds: number;
}
