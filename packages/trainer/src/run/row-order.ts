import { DataError, hashSeed } from "@cria/core";
import { DataLoader, type DataLoaderPlace, type DataLoaderState, type DatasetRow } from "@cria/rollout";
import type { StepResult } from "../step/training-step.js";
import type { Training } from "./training.js";

/** Rows of a step. */
export interface DealtRows {
  rows: DatasetRow[];
  /** From 0. */
  epoch: number;
  /** Hands out fresh prompts for the same step; none when every row had its turn. */
  nextRows: () => DatasetRow[];
}

/** Decides which rows each step is given. */
export interface RowOrder {
  /** Steps are dealt in their order, ahead of being learned from where the training has a lag. */
  deal(step: number): DealtRows;
  /** A step was learned from. */
  learn(step: number, result: Pick<StepResult, "trajectories" | "leftOut">): void;
  /** The place when `step` steps are done, the last one just now: gives what a checkpoint's data.json holds of it. */
  mark(step: number): () => Record<string, unknown>;
  /** @param data a checkpoint's data.json. @throws DataError when it is of another order. */
  restore(data: Readonly<Record<string, unknown>>): void;
}

/** Passes over all rows; only seed and epoch decide the order of each. */
export class PassesOverRows implements RowOrder {
  private readonly loader: DataLoader<DatasetRow>;
  /** The loader's place after the rows of steps that were dealt, and are not done. */
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

  /** Other rows for a step, in an order of its own: what other steps are given does not depend on how many it takes. */
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

/** The error for a checkpoint whose rows came in another order. */
export function refuseOrder(expected: string, received: string): DataError {
  return new DataError("was made with another order of rows", {
    code: "data/other-loader",
    subject: "the checkpoint's data.json",
    expected: `${expected} (of this run)`,
    received: `${received} (saved)`,
    remedy: "resume with the same files, data.sampler, data.train_batch_size and data.seed, or start a new run",
  });
}
