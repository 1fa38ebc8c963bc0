import { isDeepStrictEqual } from "node:util";
import { DataError } from "../errors/data-error.js";
import { type Column, failColumn } from "./column.js";
import { DenseColumn } from "./dense-column.js";
import { RaggedColumn } from "./ragged-column.js";
import { ValueColumn } from "./value-column.js";

/** Facts about the whole batch, not about a sample. */
export type BatchMeta = Readonly<Record<string, unknown>>;

/**
 * Samples in columns, with facts about the whole in `meta`: what the field calls a DataProto. A batch never changes; every
 * operation returns a new one and shares what it need not copy. Samples are counted from 0.
 *
 * ```ts
 * const batch = new Batch({
 *   tokenIds: RaggedColumn.fromRows([Int32Array.of(1, 2, 3), Int32Array.of(4)]),
 *   reward: new DenseColumn(Float32Array.of(1, 0)),
 *   uid: new ValueColumn(["a", "b"]),
 * });
 * batch.repeat(2, true).values("uid"); // ["a", "a", "b", "b"]
 * ```
 */
export class Batch {
  readonly size: number;
  private readonly columns: ReadonlyMap<string, Column>;

  /** @throws DataError when the columns do not have the same number of samples. */
  constructor(
    columns: Readonly<Record<string, Column>> | ReadonlyMap<string, Column>,
    readonly meta: BatchMeta = {},
  ) {
    this.columns = new Map(columns instanceof Map ? columns : Object.entries(columns));
    const [first] = this.columns;
    this.size = first?.[1].size ?? 0;
    for (const [name, column] of this.columns)
      if (column.size !== this.size)
        throw failColumn(
          `column "${name}"`,
          "has another number of samples than the rest",
          `${this.size} (as "${first![0]}")`,
          `${column.size}`,
        );
  }

  /** Names of the columns, in the order in which they were given. */
  get names(): string[] {
    return [...this.columns.keys()];
  }

  has(name: string): boolean {
    return this.columns.has(name);
  }

  /** @throws DataError naming the columns that there are. */
  column(name: string): Column {
    const column = this.columns.get(name);
    if (column) return column;
    throw failColumn(`column "${name}"`, "does not exist", this.names.join(", ") || "a batch with columns", name);
  }

  /** @throws DataError when the column is of another kind. */
  dense(name: string): DenseColumn {
    return this.columnOf(name, DenseColumn, "dense");
  }

  /** @throws DataError when the column is of another kind. */
  ragged(name: string): RaggedColumn {
    return this.columnOf(name, RaggedColumn, "ragged");
  }

  /** The values of a column, one for each sample. @throws DataError when the column is of another kind. */
  values<T = unknown>(name: string): readonly T[] {
    return this.columnOf(name, ValueColumn as new (values: readonly T[]) => ValueColumn<T>, "values").values;
  }

  /** This batch with columns added or replaced. @throws DataError when their sizes differ. */
  with(columns: Readonly<Record<string, Column>>, meta: BatchMeta = {}): Batch {
    return new Batch(new Map([...this.columns, ...Object.entries(columns)]), { ...this.meta, ...meta });
  }

  /** Only these columns; the meta stays. @throws DataError for a name that does not exist. */
  select(names: readonly string[]): Batch {
    return new Batch(new Map(names.map((name) => [name, this.column(name)])), this.meta);
  }

  /** Takes columns out: what was taken, and what is left. Both keep the meta. @throws DataError for an unknown name. */
  pop(names: readonly string[]): { popped: Batch; rest: Batch } {
    return { popped: this.select(names), rest: this.select(this.names.filter((name) => !names.includes(name))) };
  }

  /**
   * The columns and meta of both.
   * @throws DataError when sizes differ, or a column or meta key of the same name has another value.
   */
  union(other: Batch): Batch {
    for (const [name, column] of other.columns)
      if (this.columns.has(name) && !this.columns.get(name)!.equals(column)) throw makeConflict(`column "${name}"`);
    return new Batch(new Map([...other.columns, ...this.columns]), mergeMeta(this.meta, other.meta));
  }

  /** The samples at `indices`, in that order; an index may repeat. @throws DataError for one that does not exist. */
  take(indices: ArrayLike<number>): Batch {
    for (let i = 0; i < indices.length; i++) {
      const index = indices[i]!;
      if (!Number.isInteger(index) || index < 0 || index >= this.size)
        throw failColumn("sample", "does not exist", `a whole number from 0 to ${this.size - 1}`, String(index));
    }
    return this.map((column) => column.take(indices));
  }

  /** Samples `start` to `end` (exclusive), clamped to what there is. */
  slice(start: number, end: number = this.size): Batch {
    const from = Math.min(Math.max(0, start), this.size);
    const to = Math.min(Math.max(from, end), this.size);
    return this.map((column) => column.slice(from, to));
  }

  /** All samples in another order. @throws DataError unless `order` is a permutation. */
  reorder(order: ArrayLike<number>): Batch {
    if (order.length !== this.size || new Set(Array.from(order)).size !== this.size)
      throw failColumn(
        "order",
        "is not a permutation",
        `each of 0 to ${this.size - 1} once`,
        `${order.length} indices, ${new Set(Array.from(order)).size} different`,
      );
    return this.take(order);
  }

  /**
   * Every sample `n` times (at least 1).
   * @param interleave true: a a b b; false: a b a b.
   */
  repeat(n: number, interleave = true): Batch {
    checkCount("repeat", n);
    const { size } = this;
    return this.take(Int32Array.from({ length: size * n }, (_, i) => (interleave ? Math.floor(i / n) : i % size)));
  }

  /** `count` equal parts. @throws DataError when the samples cannot be shared out equally: pad first. */
  chunk(count: number): Batch[] {
    checkCount("chunk", count);
    if (this.size % count === 0)
      return Array.from({ length: count }, (_, i) =>
        this.slice((i * this.size) / count, ((i + 1) * this.size) / count),
      );
    throw new DataError("cannot be cut into equal parts", {
      code: "data/bad-batch",
      subject: `batch of ${this.size}`,
      expected: `a multiple of ${count} samples`,
      received: `${this.size}`,
      remedy: `use padToDivisor(${count}) before, or split(size), whose last part may be smaller`,
    });
  }

  /** Parts of `size` samples (at least 1); the last may be smaller. */
  split(size: number): Batch[] {
    checkCount("split", size);
    return Array.from({ length: Math.ceil(this.size / size) }, (_, i) => this.slice(i * size, (i + 1) * size));
  }

  /**
   * The samples of all batches, one batch after the other.
   * @throws DataError when there is none, or their columns or meta differ.
   */
  static concat(batches: readonly Batch[]): Batch {
    const [first, ...others] = batches;
    if (!first) throw failColumn("concat", "has nothing to put together", "at least one batch", "none");
    for (const [i, other] of others.entries()) {
      const [expected, received] = [first, other].map((b) =>
        [...b.columns].map(([name, column]) => `${name}: ${column.type}`).sort(),
      );
      if (!isDeepStrictEqual(expected, received))
        throw failColumn(`concat, batch ${i + 1}`, "has other columns", expected!.join(", "), received!.join(", "));
    }
    const meta = others.reduce((merged, other) => mergeMeta(merged, other.meta), first.meta);
    const joined = [...first.columns].map(([name, column]) => {
      return [name, column.concat(others.map((other) => other.column(name)))] as const;
    });
    return new Batch(new Map(joined), meta);
  }

  /** Samples from the start are repeated at the end until `divisor` divides the size; `unpad(padSize)` takes them off. */
  padToDivisor(divisor: number): { batch: Batch; padSize: number } {
    checkCount("padToDivisor", divisor);
    const padSize = this.size === 0 ? 0 : (divisor - (this.size % divisor)) % divisor;
    if (padSize === 0) return { batch: this, padSize };
    return { batch: this.take(Int32Array.from({ length: this.size + padSize }, (_, i) => i % this.size)), padSize };
  }

  /** Without the last `padSize` samples. @throws DataError when there are fewer. */
  unpad(padSize: number): Batch {
    if (!Number.isInteger(padSize) || padSize < 0 || padSize > this.size)
      throw failColumn("unpad", "cannot be done", `0 to ${this.size} samples`, String(padSize));
    return padSize === 0 ? this : this.slice(0, this.size - padSize);
  }

  /**
   * Checks that ragged columns belong together: as many values in each sample, as tokens, mask and logprobs must have.
   * @throws DataError naming the first sample that differs.
   */
  checkAligned(names: readonly string[]): void {
    const [first, ...others] = names.map((name) => this.ragged(name));
    others.forEach((other, k) => {
      for (let i = 0; i < this.size; i++)
        if (other.lengthOf(i) !== first!.lengthOf(i))
          throw failColumn(
            `column "${names[k + 1]}", sample ${i}`,
            "has another length than its tokens",
            `${first!.lengthOf(i)} (as "${names[0]}")`,
            `${other.lengthOf(i)}`,
          );
    });
  }

  /** Same columns (in any order), values and meta. */
  equals(other: Batch): boolean {
    return (
      this.columns.size === other.columns.size &&
      isDeepStrictEqual(this.meta, other.meta) &&
      [...this.columns].every(([name, column]) => other.has(name) && column.equals(other.column(name)))
    );
  }

  private map(change: (column: Column) => Column): Batch {
    return new Batch(new Map([...this.columns].map(([name, column]) => [name, change(column)])), this.meta);
  }

  private columnOf<T extends Column>(name: string, kind: new (...args: never[]) => T, expected: string): T {
    const column = this.column(name);
    if (column instanceof kind) return column;
    throw failColumn(`column "${name}"`, "is of another kind", expected, column.type);
  }
}

function mergeMeta(a: BatchMeta, b: BatchMeta): BatchMeta {
  for (const [key, value] of Object.entries(b))
    if (Object.hasOwn(a, key) && !isDeepStrictEqual(a[key], value)) throw makeConflict(`meta "${key}"`);
  return { ...b, ...a };
}

function makeConflict(subject: string): DataError {
  return new DataError("differs between the two batches", {
    code: "data/batch-conflict",
    subject: `batch: ${subject}`,
    expected: "equal values under the same name",
    received: "unequal ones",
    remedy: "rename one of them, or take it out with pop",
  });
}

function checkCount(operation: string, count: number): void {
  if (!Number.isInteger(count) || count < 1)
    throw failColumn(operation, "has a wrong count", "a whole number of at least 1", String(count));
}
