import { DataError, hashSeed } from "@cria/core";
import { DataLoader, type DataLoaderPlace, type DataLoaderState, type DatasetRow } from "@cria/rollout";
import type { StepResult } from "../step/training-step.js";
import type { Training } from "./training.js";

/** Rows dealt to a step. */
export interface DealtRows {
  rows: DatasetRow[];
  /** Number of the epoch, from 0. */
  epoch: number;
  /** Returns fresh prompts for the same step; none once every row was used. */
  nextRows: () => DatasetRow[];
}

/** Determines the rows of each step. */
export interface RowOrder {
  /** Returns the rows of a step. Steps are dealt in order; with a lag, before earlier steps are learned from. */
  deal(step: number): DealtRows;
  /** Called after a step was learned from. */
  learn(step: number, result: Pick<StepResult, "trajectories" | "leftOut">): void;
  /**
   * Records the place after `step` steps, of which the last was just finished. Returns a function that gives the
   * order's part of a checkpoint's data.json.
   */
  mark(step: number): () => Record<string, unknown>;
  /**
   * @param data a checkpoint's data.json.
   * @throws DataError when it was made with another order.
   */
  restore(data: Readonly<Record<string, unknown>>): void;
}

/** Passes over all rows; only seed and epoch determine the order of each pass. */
export class PassesOverRows implements RowOrder {
  private readonly loader: DataLoader<DatasetRow>;
  /** The loader's place after each step that was dealt and is not finished. */
  private readonly places = new Map<number, DataLoaderPlace>();

  constructor(private readonly training: Training) {
    const { data } = training.settings;
    this.loader = new DataLoader(training.trainRows, {
      batchSize: Math.min(data.batchSize, training.trainRows.length),
      shuffle: data.shuffle,
      seed: data.seed,
    });
  }

  deal(step: number): DealtRows {
    const { loader } = this;
    const rows = loader.next();
    const place = () => this.places.set(step, loader.place);
    place();
    if (this.training.settings.lag > 0) return { rows, epoch: loader.epoch, nextRows: this.refill(step, rows) };
    const nextRows = () => {
      const fresh = loader.next();
      place();
      return fresh;
    };
    return { rows, epoch: loader.epoch, nextRows };
  }

  learn(): void {}

  mark(step: number): () => { loader: DataLoaderState } {
    const place = this.places.get(step) ?? this.loader.place;
    for (const done of this.places.keys()) if (done <= step) this.places.delete(done);
    return () => ({ loader: this.loader.save(place) });
  }

  restore({ loader }: { loader?: DataLoaderState }): void {
    if (!loader) throw refuseOrder("passes over the rows", "a sampler of rows (data.sampler)");
    this.loader.restore(loader);
  }

  /**
   * Returns fresh rows for a step, in an order of its own, so that the rows of other steps do not depend on how many
   * this step takes.
   */
  private refill(step: number, dealt: readonly DatasetRow[]): () => DatasetRow[] {
    const { trainRows, settings } = this.training;
    const taken = new Set(dealt.map(({ uid }) => uid));
    const rows = trainRows.filter(({ uid }) => !taken.has(uid));
    const { batchSize, seed } = settings.data;
    const size = Math.min(batchSize, rows.length);
    const stream = new DataLoader(rows, { batchSize: size, shuffle: true, seed: hashSeed(seed, "refill", step) });
    let left = Math.ceil(rows.length / Math.max(1, size));
    return () => (left-- > 0 ? stream.next() : []);
  }
}

/** Makes the error for a checkpoint made with another order of rows. */
export function refuseOrder(expected: string, received: string): DataError {
  return new DataError("was made with another order of rows", {
    code: "data/other-loader",
    subject: "the checkpoint's data.json",
    expected: `${expected} (of this run)`,
    received: `${received} (saved)`,
    remedy: "resume with the same files, data.sampler, data.train_batch_size and data.seed, or start a new run",
  });
}
