import { type Column, failColumn } from "./column.js";
import { joinArrays } from "./dense-column.js";
import { type Dtype, dtypes, equalArrays, findDtype, makeArray, type TypedArray } from "./typed-array.js";

/**
 * A different number of numbers for each sample, such as its tokens: `values` holds them all, sample after sample, and
 * those of the i-th are `[offsets[i], offsets[i + 1])`. No padding is stored.
 */
export class RaggedColumn implements Column {
  readonly size: number;
  readonly dtype: Dtype;
  readonly type: string;

  /** @throws DataError unless `offsets` rise from 0 to the number of values. */
  constructor(
    readonly values: TypedArray,
    /** One more than there are samples. */
    readonly offsets: Int32Array,
  ) {
    const dtype = findDtype(values);
    const problem = dtype ? findOffsetProblem(offsets, values.length) : "values are not a typed array";
    if (!dtype || problem !== null)
      throw failColumn(
        "ragged column",
        "has offsets that do not fit its values",
        `offsets rising from 0 to ${values.length}`,
        problem ?? "other values",
      );
    this.dtype = dtype;
    this.size = offsets.length - 1;
    this.type = `ragged ${dtype}`;
  }

  /**
   * From one array for each sample.
   * @param dtype needed when there are no rows; otherwise it is that of the rows.
   * @throws DataError when the rows are not of one dtype.
   */
  static fromRows(rows: readonly TypedArray[], dtype: Dtype = findDtype(rows[0]) ?? "float32"): RaggedColumn {
    const odd = rows.findIndex((row) => !(row instanceof dtypes[dtype]));
    if (odd >= 0)
      throw failColumn(
        `ragged column, sample ${odd}`,
        "has another type than the rest",
        dtype,
        findDtype(rows[odd]) ?? typeof rows[odd],
      );
    const offsets = new Int32Array(rows.length + 1);
    rows.forEach((row, i) => {
      offsets[i + 1] = offsets[i]! + row.length;
    });
    return new RaggedColumn(rows.length > 0 ? joinArrays(rows) : makeArray(dtype, 0), offsets);
  }

  /** The values of one sample: a view. */
  row(index: number): TypedArray {
    return this.values.subarray(this.offsets[index], this.offsets[index + 1]);
  }

  rows(): TypedArray[] {
    return Array.from({ length: this.size }, (_, i) => this.row(i));
  }

  /** Values of one sample. */
  lengthOf(index: number): number {
    return this.offsets[index + 1]! - this.offsets[index]!;
  }

  take(indices: ArrayLike<number>): RaggedColumn {
    return RaggedColumn.fromRows(
      Array.from(indices, (index) => this.row(index)),
      this.dtype,
    );
  }

  slice(start: number, end: number): RaggedColumn {
    const first = this.offsets[start]!;
    const offsets = this.offsets.slice(start, end + 1).map((offset) => offset - first);
    return new RaggedColumn(this.values.subarray(first, this.offsets[end]), offsets);
  }

  equals(other: Column): boolean {
    return (
      other instanceof RaggedColumn &&
      other.type === this.type &&
      equalArrays(this.offsets, other.offsets) &&
      equalArrays(this.values, other.values)
    );
  }

  concat(others: readonly Column[]): RaggedColumn {
    return RaggedColumn.fromRows(
      [this, ...(others as RaggedColumn[])].flatMap((column) => column.rows()),
      this.dtype,
    );
  }
}

function findOffsetProblem(offsets: Int32Array, end: number): string | null {
  if (!(offsets instanceof Int32Array) || offsets.length === 0) return "no offsets";
  if (offsets[0] !== 0) return `a first offset of ${offsets[0]}`;
  for (let i = 1; i < offsets.length; i++)
    if (offsets[i]! < offsets[i - 1]!) return `offset ${i} falling from ${offsets[i - 1]} to ${offsets[i]}`;
  return offsets.at(-1) === end ? null : `a last offset of ${offsets.at(-1)}`;
}
