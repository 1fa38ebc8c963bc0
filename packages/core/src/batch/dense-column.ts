import { type Column, failColumn } from "./column.js";
import { type Dtype, equalArrays, findDtype, makeArray, type TypedArray } from "./typed-array.js";

/** Equally shaped numbers for each sample, row-major: `values` is [size, ...shape]. Shape [] is one number a sample. */
export class DenseColumn implements Column {
  readonly size: number;
  readonly dtype: Dtype;
  readonly type: string;
  /** Numbers of one sample. */
  private readonly stride: number;

  /** @throws DataError when `values` is not a whole number of samples. */
  constructor(
    readonly values: TypedArray,
    readonly shape: readonly number[] = [],
  ) {
    const dtype = findDtype(values);
    const stride = shape.reduce((product, n) => product * n, 1);
    if (!dtype || !shape.every((n) => Number.isInteger(n) && n > 0) || values.length % stride !== 0)
      throw failColumn(
        "dense column",
        "has values that do not fill its shape",
        `a typed array of [size${shape.map((n) => `, ${n}`).join("")}] numbers`,
        dtype ? `${values.length} of ${dtype}` : typeof values,
      );
    this.dtype = dtype;
    this.stride = stride;
    this.size = values.length / stride;
    this.type = `dense ${dtype}[${shape.join(",")}]`;
  }

  /** The numbers of one sample: a view. */
  row(index: number): TypedArray {
    return this.values.subarray(index * this.stride, (index + 1) * this.stride);
  }

  take(indices: ArrayLike<number>): DenseColumn {
    const { stride } = this;
    const values = makeArray(this.dtype, indices.length * stride);
    for (let i = 0; i < indices.length; i++) {
      const from = indices[i]! * stride;
      for (let k = 0; k < stride; k++) values[i * stride + k] = this.values[from + k]!;
    }
    return new DenseColumn(values, this.shape);
  }

  slice(start: number, end: number): DenseColumn {
    return new DenseColumn(this.values.subarray(start * this.stride, end * this.stride), this.shape);
  }

  equals(other: Column): boolean {
    return other instanceof DenseColumn && other.type === this.type && equalArrays(this.values, other.values);
  }

  concat(others: readonly Column[]): DenseColumn {
    return new DenseColumn(joinArrays([this, ...(others as DenseColumn[])].map((c) => c.values)), this.shape);
  }
}

/** Arrays of one dtype, one after the other. At least one array. */
export function joinArrays(arrays: readonly TypedArray[]): TypedArray {
  const joined = makeArray(
    findDtype(arrays[0])!,
    arrays.reduce((sum, array) => sum + array.length, 0),
  );
  let at = 0;
  for (const array of arrays) {
    joined.set(array, at);
    at += array.length;
  }
  return joined;
}
