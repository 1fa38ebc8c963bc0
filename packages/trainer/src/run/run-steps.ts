import type { PendingCheckpoint, TrainingState } from "../checkpoints/checkpoint-store.js";
import type { SavePoints } from "../checkpoints/save-points.js";
import type { StepMetrics } from "../step-metrics.js";

export interface InterruptedTraining {
  /** Steps done, and how many were asked for. */
  step: number;
  total: number;
  /** What to go on from; null: nothing is saved. */
  checkpoint: string | null;
  /** What was under way and has to be done again; null: nothing. */
  lost: string | null;
}

/** Training was ended from outside. What was finished is saved, where the run keeps checkpoints. */
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

/** How a training takes its steps, and where it keeps what they leave. */
export interface Steps<Place extends { step: number }> {
  /** Steps done by an earlier process, and how many there are in all. */
  start: number;
  total: number;
  signal?: AbortSignal;
  /** Whether the run is to end after the step that it takes. */
  isStopping?: () => boolean;
  saves: SavePoints;
  /** What a checkpoint would hold now beside the engines, `step` steps being done; it is called after each step. */
  mark: (step: number) => Place;
  /** `data` becomes a checkpoint's data.json; `unvalidated` is added to it. */
  describe: (place: Place) => Omit<TrainingState, "step" | "data"> & { data: object };
  /**
   * Takes a step and returns its metrics. When the signal aborts it throws the signal's reason while it has changed
   * nothing; an update that has begun is finished.
   */
  take: (step: number) => Promise<StepMetrics>;
  /** What is lost when `take` is aborted. */
  nameWork: (step: number) => string;
  /** After each step, before its metrics are written. */
  onStep?: (step: number, metrics: StepMetrics) => void | Promise<void>;
  /** After each step; what it returns joins the step's metrics. */
  validate?: (step: number) => Promise<StepMetrics>;
  /** Writes a step's metrics, validation included. */
  record: (step: number, metrics: StepMetrics) => Promise<void>;
  /** Metrics of the checkpoint's step when the validation after it was interrupted; that validation runs first. */
  unvalidated?: StepMetrics;
}

/**
 * Takes the steps of a training that has not been interrupted, saving by `saves`. When the signal aborts, what `take` and
 * `validate` do before they change anything ends at once; the last finished step is then saved.
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
      // Aborted before its update: nothing of this step has changed the engines.
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
    // This comes last: a committed checkpoint has its metrics too, and a resumed run forgets only what it computes
    // again.
    await pending?.commit();
  }
  if (done.step < total) await saves.saveLast(describe(done));
  return history;
}
