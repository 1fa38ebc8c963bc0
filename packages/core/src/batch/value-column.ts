import { isDeepStrictEqual } from "node:util";
import type { Column } from "./column.js";

/** Any value for each sample: messages, ids, keyword arguments. Values are shared, not copied. */
export class ValueColumn<T = unknown> implements Column {
  readonly type = "values";

  constructor(readonly values: readonly T[]) {}

  get size(): number {
    return this.values.length;
  }

  row(index: number): T {
    return this.values[index]!;
  }

  take(indices: ArrayLike<number>): ValueColumn<T> {
    return new ValueColumn(Array.from(indices, (index) => this.values[index]!));
  }

  slice(start: number, end: number): ValueColumn<T> {
    return new ValueColumn(this.values.slice(start, end));
  }

  equals(other: Column): boolean {
    return other instanceof ValueColumn && isDeepStrictEqual(this.values, other.values);
  }

  concat(others: readonly Column[]): ValueColumn<T> {
    return new ValueColumn([this, ...(others as ValueColumn<T>[])].flatMap((column) => column.values));
  }
}
