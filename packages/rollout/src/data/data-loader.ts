import { createHash } from "node:crypto";
import { DataError, hashSeed } from "@cria/core";
import { shuffleIndices } from "@cria/core/internal";

/** Position of a loader in its rows. */
export interface DataLoaderPlace {
  epoch: number;
  /** Number of rows of the epoch already handed out. */
  position: number;
}

/** A loader's position and everything that determines the order of its rows. Plain JSON, for checkpoints. */
export interface DataLoaderState extends DataLoaderPlace {
  /** Settings that determine the order; restoring with other ones is refused. */
  batchSize: number;
  shuffle: boolean;
  seed: number;
  rows: number;
  /** Hash of the rows' uids, in order. */
  uids: string;
}

/** Hands out batches of rows, epoch after epoch, in an order determined by seed and epoch alone. */
export class DataLoader<Row extends { uid: string }> {
  private at: DataLoaderPlace = { epoch: 0, position: 0 };
  private order: Int32Array;

  constructor(
    private readonly rows: readonly Row[],
    private readonly options: { batchSize: number; shuffle: boolean; seed: number },
  ) {
    this.order = this.makeOrder();
  }

  /** Number of full batches in one epoch; a smaller rest is dropped. */
  get batchesPerEpoch(): number {
    return Math.max(1, Math.floor(this.rows.length / this.options.batchSize));
  }

  get epoch(): number {
    return this.at.epoch;
  }

  /** The current place; pass it to `save` later. */
  get place(): DataLoaderPlace {
    return { ...this.at };
  }

  next(): Row[] {
    const { batchSize } = this.options;
    if (this.at.position + batchSize > this.rows.length && this.at.position > 0) {
      this.at = { epoch: this.at.epoch + 1, position: 0 };
      this.order = this.makeOrder();
    }
    const picked = this.order.slice(this.at.position, this.at.position + batchSize);
    this.at.position += batchSize;
    return [...picked].map((i) => this.rows[i]!);
  }

  /** @param place an earlier position; default: the current one. */
  save(place: DataLoaderPlace = this.at): DataLoaderState {
    return { ...place, ...this.describe() };
  }

  /**
   * Continues exactly where `state` was saved, even within an epoch.
   * @throws DataError when it was saved over other rows, or with another batch size, shuffle or seed.
   */
  restore(state: DataLoaderState): void {
    for (const [name, value] of Object.entries(this.describe())) {
      const saved = state[name as keyof DataLoaderState];
      if (saved === value) continue;
      throw new DataError("was saved by a loader that differs", {
        code: "data/other-loader",
        subject: `state of the data loader: ${name}`,
        expected: `${value} (of this run)`,
        received: `${saved} (saved)`,
        remedy:
          "resume with the same files, filters, data.train_batch_size, data.shuffle and data.seed, or start a new run",
      });
    }
    this.at = { epoch: state.epoch, position: state.position };
    this.order = this.makeOrder();
  }

  private describe(): Omit<DataLoaderState, "epoch" | "position"> {
    return { ...this.options, rows: this.rows.length, uids: hashUids(this.rows) };
  }

  private makeOrder(): Int32Array {
    if (!this.options.shuffle) return Int32Array.from(this.rows, (_, i) => i);
    return shuffleIndices(this.rows.length, hashSeed(this.options.seed, "epoch", this.at.epoch));
  }
}

/** Hash of the rows' uids, in order. */
export function hashUids(rows: readonly { uid: string }[]): string {
  const uids = createHash("sha256");
  for (const row of rows) uids.update(`${row.uid}\n`);
  return uids.digest("hex").slice(0, 16);
}
