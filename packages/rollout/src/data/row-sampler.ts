/** Request to a sampler for the rows of one step. */
export interface PickRequest {
  /** Step number, from 1. */
  step: number;
  /** Number of rows of the step: `data.train_batch_size`, or all rows if fewer. */
  count: number;
  /** Number of spare rows, which replace groups without spread (`filter_groups`); else 0. */
  spare: number;
  /** Number of conversations of a row: `rollout.n`. */
  samples: number;
  /** Seed of this step, derived from `data.seed`: the same in every run. */
  seed: number;
}

/** Index of a row among the sampler's rows, from 0, perhaps with the number of its conversations in this step. */
export type PickedRow = number | { row: number; samples: number };

/** Outcome of the conversations of one row. */
export interface RowOutcome {
  /** Index of the row among the sampler's rows. */
  row: number;
  /** Reward of each conversation that did not fail. Empty: all failed. */
  rewards: number[];
  /** Share of the judged conversations that reached the goal, in [0, 1]; null: none was judged. */
  success: number | null;
}

/** Outcome of a step: one entry for each row used, including groups that `filter_groups` dropped. Plain JSON. */
export interface StepOutcome {
  step: number;
  rows: RowOutcome[];
}

/**
 * Chooses the rows of each step. The choice may depend only on requests and reported outcomes, never on a clock or a
 * random generator of its own: a killed run then resumes identically.
 */
export interface RowSampler {
  /**
   * Returns distinct rows: `count` of the step, then up to `spare` replacements in order of use. A row is held in
   * `samples` conversations, from 1 to 4096; without that in its own number (`__rollout_n__`), else in `rollout.n`.
   * Called once per step, in order.
   */
  pick(request: PickRequest): readonly PickedRow[];
  /**
   * Reports the outcome of a step, in step order. `pick` of step k is called once all steps up to k - 1 are
   * reported, or up to k - 1 - lag when steps are sampled ahead: a step's rows follow from the schedule, never from
   * which step finished first.
   */
  update?(outcome: StepOutcome): void;
  /** All state that `pick` and `update` have changed, as plain JSON, for checkpoints. Required with `update`. */
  save?(): unknown;
  /** Restores the state that `save` returned. */
  restore?(state: unknown): void;
}

export interface RowSamplerOptions {
  /** `data.train_batch_size`, or the number of rows if fewer. */
  batchSize: number;
  /** `data.seed`. */
  seed: number;
  /** `data.sampler.sampler_kwargs`. */
  kwargs: Readonly<Record<string, unknown>>;
}

/** A sampler class. It gets the training rows: the task's values, or `DatasetRow`s read from files. */
export type RowSamplerClass<Row extends object = object> = new (
  rows: readonly Row[],
  options: RowSamplerOptions,
) => RowSampler;

/** A stateless sampler: a function with the contract of `RowSampler.pick`. */
export type RowPicker<Row extends object = object> = (
  request: PickRequest & { rows: readonly Row[] },
) => readonly PickedRow[];
