/** What a sampler is asked for: the rows of one step. */
export interface PickRequest {
  /** From 1. */
  step: number;
  /** Rows of the step: `data.train_batch_size`, or all where there are fewer. */
  count: number;
  /** Further rows that the step may take, where others take the place of groups without spread (`filter_groups`); else 0. */
  spare: number;
  /** Of this step, from `data.seed`: the same in every run. */
  seed: number;
}

/** What the conversations of one row came to. */
export interface RowOutcome {
  /** Its position in the sampler's rows. */
  row: number;
  /** Of each conversation that did not fail, in units of reward. Empty: all failed. */
  rewards: number[];
  /** Share of the judged conversations that reached the goal, in [0, 1]; null: none was judged. */
  success: number | null;
}

/** What a step came to: each row that was asked, those too whose groups `filter_groups` left out. Plain JSON. */
export interface StepOutcome {
  step: number;
  rows: RowOutcome[];
}

/**
 * Decides which rows each step is given. It may depend on what it is asked and told alone, never on a clock or a generator of its
 * own: a run that was killed then goes on as if it had not been.
 */
export interface RowSampler {
  /**
   * Positions of rows, from 0, each at most once: `count` rows of the step, then up to `spare` others in the order in which they
   * stand in. It is called once for each step, in their order.
   */
  pick(request: PickRequest): readonly number[];
  /**
   * What a step came to. Steps are told in their order. Before `pick` of step k all are told up to k - 1, or up to k - 1 - lag where
   * steps are sampled ahead: what a step is given follows from the schedule, never from what ended first.
   */
  update?(outcome: StepOutcome): void;
  /** All that `pick` and `update` have changed, as plain JSON, for checkpoints. Whoever has `update` has it. */
  save?(): unknown;
  /** Goes on where `save` was called. */
  restore?(state: unknown): void;
}

export interface RowSamplerOptions {
  /** `data.train_batch_size`, or the number of rows where there are fewer. */
  batchSize: number;
  /** `data.seed`. */
  seed: number;
  /** `data.sampler.sampler_kwargs`. */
  kwargs: Readonly<Record<string, unknown>>;
}

/** A class of samplers. It gets the rows of the training: values of the task, or of files `DatasetRow`s. */
export type RowSamplerClass<Row extends object = object> = new (
  rows: readonly Row[],
  options: RowSamplerOptions,
) => RowSampler;

/** A function that picks by itself, and learns nothing. It returns what `RowSampler.pick` does. */
export type RowPicker<Row extends object = object> = (
  request: PickRequest & { rows: readonly Row[] },
) => readonly number[];
