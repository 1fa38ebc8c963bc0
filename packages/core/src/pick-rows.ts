/**
 * Picks rows of a table of `width` values a row: those with these indices, in this order.
 * @returns integers of integers, floats of all else.
 */
export function pickRows(values: Int32Array, indices: ArrayLike<number>, width?: number): Int32Array;
export function pickRows(values: ArrayLike<number>, indices: ArrayLike<number>, width?: number): Float32Array;
export function pickRows(values: ArrayLike<number>, indices: ArrayLike<number>, width = 1): Int32Array | Float32Array {
  const size = indices.length * width;
  const picked = values instanceof Int32Array ? new Int32Array(size) : new Float32Array(size);
  for (let i = 0; i < indices.length; i++) {
    const from = indices[i]! * width;
    for (let k = 0; k < width; k++) picked[i * width + k] = values[from + k]!;
  }
  return picked;
}
