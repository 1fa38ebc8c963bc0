/** The element types that columns may have, by their names in files. */
export const dtypes = {
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  float32: Float32Array,
  float64: Float64Array,
} as const;

export type Dtype = keyof typeof dtypes;
export type TypedArray =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array;

/** The dtype of an array; undefined when it is none of them. */
export function findDtype(value: unknown): Dtype | undefined {
  // A Buffer is a Uint8Array too.
  return (Object.keys(dtypes) as Dtype[]).find((name) => value instanceof dtypes[name]);
}

/** An array of zeros. */
export function makeArray(dtype: Dtype, length: number): TypedArray {
  return new dtypes[dtype](length);
}

/** Equal values, where NaN equals NaN and 0 differs from -0. */
export function equalArrays(a: TypedArray, b: TypedArray): boolean {
  if (a.length !== b.length || findDtype(a) !== findDtype(b)) return false;
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
  return true;
}
