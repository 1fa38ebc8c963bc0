import { hashSeed, shuffleIndices } from "./hash-seed.js";

export interface DataLoaderState {
  epoch: number;
  /** Rows of the epoch already handed out. */
  position: number;
}

/** Hands out batches of rows, epoch after epoch, in an order that seed and epoch alone decide. */
export class DataLoader<Row> {
  private state: DataLoaderState = { epoch: 0, position: 0 };
  private order: Int32Array;

  constructor(
    private readonly rows: readonly Row[],
    private readonly options: { batchSize: number; shuffle: boolean; seed: number },
  ) {
    this.order = this.makeOrder();
  }

  /** Full batches in one epoch; a smaller rest is left out. */
  get batchesPerEpoch(): number {
    return Math.max(1, Math.floor(this.rows.length / this.options.batchSize));
  }

  get epoch(): number {
    return this.state.epoch;
  }

  next(): Row[] {
    const { batchSize } = this.options;
    if (this.state.position + batchSize > this.rows.length && this.state.position > 0) {
      this.state = { epoch: this.state.epoch + 1, position: 0 };
      this.order = this.makeOrder();
    }
    const picked = this.order.slice(this.state.position, this.state.position + batchSize);
    this.state.position += batchSize;
    return [...picked].map((i) => this.rows[i]!);
  }

  save(): DataLoaderState {
    return { ...this.state };
  }

  restore(state: DataLoaderState): void {
    this.state = { ...state };
    this.order = this.makeOrder();
  }

  private makeOrder(): Int32Array {
    if (!this.options.shuffle) return Int32Array.from(this.rows, (_, i) => i);
    return shuffleIndices(this.rows.length, hashSeed(this.options.seed, "epoch", this.state.epoch));
  }
}
