import type { PendingCheckpoint, TrainingState } from "../checkpoints/checkpoint-store.js";
import type { SavePoints } from "../checkpoints/save-points.js";
import type { StepMetrics } from "../step-metrics.js";

export interface InterruptedTraining {
  /** Number of steps done, and number of steps requested. */
  step: number;
  total: number;
  /** Checkpoint to resume from; null: nothing is saved. */
  checkpoint: string | null;
  /** Interrupted work that must be repeated; null: none. */
  lost: string | null;
}

/** Training was interrupted by its signal. Finished steps are saved, if the run keeps checkpoints. */
export class TrainingInterrupted extends Error {
  constructor(
    readonly training: InterruptedTraining,
    options?: ErrorOptions,
  ) {
    const { step, total, checkpoint, lost } = training;
    const why = step === 0 ? "no step was finished" : "this run keeps no checkpoints";
    const lines = [
      `training stopped after step ${step} of ${total}`,
      `  saved: ${checkpoint ?? `nothing, for ${why}`}`,
      `  lost: ${lost ?? "nothing"}`,
    ];
    super(lines.join("\n"), options);
    this.name = "TrainingInterrupted";
  }
}

/** A checkpoint without its step; `data` becomes its data.json, to which unvalidated metrics are added. */
export type StepState = Omit<TrainingState, "step" | "data"> & { data: object };

export interface StepsOptions<Place extends { step: number }> {
  /** Number of steps done by an earlier process, and number of steps in total. */
  start: number;
  total: number;
  /** Metrics of step `start` if the validation after it was interrupted; that validation is then made up for. */
  unvalidated?: StepMetrics;
  signal?: AbortSignal;
  saves: SavePoints;
  /** Everything besides the engines' weights that a checkpoint holds. */
  state: {
    /** Returns the state after `step` steps; called after each step. */
    mark(step: number): Place;
    describe(place: Place): StepState;
  };
}

/**
 * The steps of a training, and their checkpoints. For each of `remaining`: change the engines, `keep`, write and
 * validate, `commit`; then `end`. Whatever is thrown meanwhile goes through `explain`.
 */
export class Steps<Place extends { step: number }> {
  readonly start: number;
  /** Metrics of step `start` to validate and commit before the first step; undefined: none. */
  readonly unvalidated: StepMetrics | undefined;
  /** Metrics of the steps committed here. */
  readonly history: StepMetrics[] = [];
  /** State after the last step that changed the engines. */
  private done: Place;
  /** Metrics of that step until they are written. */
  private open: StepMetrics | undefined;
  /** Its checkpoint, if one is due, until it is committed. */
  private pending: PendingCheckpoint | undefined;
  /** The work that an interruption would lose now; null: none. */
  private lost: string | null;

  /** Create it when the checkpoint to resume from is restored. */
  constructor(private readonly options: StepsOptions<Place>) {
    const { start, state, unvalidated } = options;
    this.start = start;
    this.unvalidated = unvalidated;
    this.done = state.mark(start);
    this.open = unvalidated;
    this.lost = start === 0 ? "the validation before training" : null;
  }

  /** Yields the numbers of the steps to take. @throws the signal's reason. */
  *remaining(isStopping: () => boolean = () => false): Generator<number> {
    const { total, signal } = this.options;
    for (let step = this.done.step + 1; step <= total && !isStopping(); step++) {
      this.lost = null;
      signal?.throwIfAborted();
      this.lost = `the rollouts of step ${step}`;
      yield step;
    }
  }

  /** Keeps a step that changed the engines, also if it is interrupted from now on. Writes its checkpoint if one is due. */
  async keep(step: number, metrics: StepMetrics): Promise<void> {
    const { saves, state } = this.options;
    this.done = state.mark(step);
    const due = saves.isDue(step);
    if (due) {
      const started = performance.now();
      this.pending = await saves.prepare(this.describe(), due);
      metrics["timing_s/save_checkpoint"] = (performance.now() - started) / 1000;
    }
    this.open = metrics;
    this.lost = `the validation after step ${step}`;
  }

  /**
   * Ends the kept step, or step `start`, whose metrics are written. Its checkpoint is committed last, so that a
   * resumed run drops only metrics that it computes again.
   */
  async commit(metrics: StepMetrics): Promise<void> {
    const { saves } = this.options;
    const { step } = this.done;
    const pending =
      step === this.start ? await saves.prepare(this.describe(), saves.isDue(step) ?? "interim") : this.pending;
    this.history.push(metrics);
    this.open = undefined;
    this.pending = undefined;
    await pending?.commit();
  }

  /** Saves a training that was stopped before its last step. */
  async end(): Promise<void> {
    if (this.done.step < this.options.total) await this.options.saves.saveLast(this.describe());
  }

  /**
   * Returns what to throw for an error: TrainingInterrupted for the signal's reason, once the last kept step is saved.
   */
  async explain(error: unknown): Promise<unknown> {
    const { total, signal, saves } = this.options;
    await this.pending?.discard();
    if (!signal?.aborted || error !== signal.reason) return error;
    const checkpoint = await saves.saveLast(this.describe(this.open));
    return new TrainingInterrupted({ step: this.done.step, total, checkpoint, lost: this.lost }, { cause: error });
  }

  private describe(unvalidated?: StepMetrics): TrainingState {
    const { step } = this.done;
    const state = this.options.state.describe(this.done);
    return { ...state, step, data: unvalidated ? { ...state.data, unvalidated } : state.data };
  }
}
