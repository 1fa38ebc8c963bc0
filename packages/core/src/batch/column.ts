import { DataError } from "../errors/data-error.js";

/** One column of a batch: something for each sample. Columns never change; operations make new ones. */
export interface Column {
  /** Samples. */
  readonly size: number;
  /** What two columns must share to be put together, for example `ragged int32`. */
  readonly type: string;
  /** The samples at `indices`, in that order; an index may repeat. */
  take(indices: ArrayLike<number>): Column;
  /** Samples `start` to `end` (exclusive); typed arrays are shared, not copied, where their layout allows. */
  slice(start: number, end: number): Column;
  equals(other: Column): boolean;
  /** This column, then the others. All have the same type. */
  concat(others: readonly Column[]): Column;
}

export function failColumn(subject: string, summary: string, expected: string, received: string): DataError {
  return new DataError(summary, { code: "data/bad-batch", subject: `batch: ${subject}`, expected, received });
}
