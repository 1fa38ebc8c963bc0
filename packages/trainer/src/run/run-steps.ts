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

/** The work of a training's steps, and the storage of their results. */
export interface Steps<Place extends { step: number }> {
  /** Number of steps done by an earlier process, and number of steps in total. */
  start: number;
  total: number;
  signal?: AbortSignal;
  /** True ends the run after the current step. */
  isStopping?: () => boolean;
  saves: SavePoints;
  /** Returns everything besides the engines that a checkpoint would hold after `step` steps; called after each step. */
  mark: (step: number) => Place;
  /** Describes a checkpoint; `data` becomes its data.json, to which `unvalidated` is added. */
  describe: (place: Place) => Omit<TrainingState, "step" | "data"> & { data: object };
  /**
   * Takes a step and returns its metrics. If the signal aborts before the step has changed anything, it throws the
   * signal's reason; a started update is finished.
   */
  take: (step: number) => Promise<StepMetrics>;
  /** Name of the work that is lost when `take` is aborted. */
  nameWork: (step: number) => string;
  /** Called after each step, before its metrics are written. */
  onStep?: (step: number, metrics: StepMetrics) => void | Promise<void>;
  /** Called after each step; its metrics are added to the step's. */
  validate?: (step: number) => Promise<StepMetrics>;
  /** Writes a step's metrics, including those of its validation. */
  record: (step: number, metrics: StepMetrics) => Promise<void>;
  /** Metrics of the checkpoint's step if the validation after it was interrupted; that validation runs first. */
  unvalidated?: StepMetrics;
}

/**
 * Takes the steps of a training, and saves checkpoints by `saves`. When the signal aborts, `take` ends at once unless
 * it has already changed the engines, and `validate` ends at once; the last finished step is then saved.
 * @returns the metrics of the steps taken here.
 * @throws TrainingInterrupted when the signal aborted.
 */
export async function runSteps<Place extends { step: number }>(steps: Steps<Place>): Promise<StepMetrics[]> {
  const { total, signal, saves } = steps;
  const history: StepMetrics[] = [];
  const describe = (place: Place, unvalidated?: StepMetrics): TrainingState => {
    const state = steps.describe(place);
    return { ...state, step: place.step, data: unvalidated ? { ...state.data, unvalidated } : state.data };
  };
  const stop = async (at: Place, lost: string | null, unvalidated?: StepMetrics) => {
    const checkpoint = await saves.saveLast(describe(at, unvalidated));
    return new TrainingInterrupted({ step: at.step, total, checkpoint, lost }, { cause: signal?.reason });
  };
  const isInterrupted = (error: unknown) => signal?.aborted === true && error === signal.reason;
  const record = async (step: number, metrics: StepMetrics) => {
    history.push(metrics);
    await steps.record(step, metrics);
  };

  let done = steps.mark(steps.start);
  if (steps.unvalidated) {
    const metrics = { ...steps.unvalidated };
    try {
      Object.assign(metrics, await steps.validate?.(done.step));
    } catch (error) {
      throw isInterrupted(error) ? await stop(done, null, steps.unvalidated) : error;
    }
    await record(done.step, metrics);
    await (await saves.prepare(describe(done), saves.isDue(done.step) ?? "interim"))?.commit();
  }
  for (let step = done.step + 1; step <= total && !steps.isStopping?.(); step++) {
    if (signal?.aborted) throw await stop(done, null);
    let metrics: StepMetrics;
    try {
      metrics = await steps.take(step);
    } catch (error) {
      // Aborted before its update: this step has not changed the engines.
      throw isInterrupted(error) ? await stop(done, steps.nameWork(step)) : error;
    }
    done = steps.mark(step);
    const due = saves.isDue(step);
    let pending: PendingCheckpoint | undefined;
    if (due) {
      const started = performance.now();
      pending = await saves.prepare(describe(done), due);
      metrics["timing_s/save_checkpoint"] = (performance.now() - started) / 1000;
    }
    try {
      await steps.onStep?.(step, metrics);
      const validated = { ...metrics, ...(await steps.validate?.(step)) };
      await record(step, validated);
    } catch (error) {
      await pending?.discard();
      throw isInterrupted(error) ? await stop(done, `the validation after step ${step}`, metrics) : error;
    }
    // Commit last, so that a committed checkpoint's metrics are written, and a resumed run drops only metrics that it
    // computes again.
    await pending?.commit();
  }
  if (done.step < total) await saves.saveLast(describe(done));
  return history;
}
