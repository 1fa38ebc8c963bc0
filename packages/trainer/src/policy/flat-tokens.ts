/** Concatenated per-token arrays of all trajectories: the form that `@cria/algorithms` uses. */

/** Start of each trajectory in the concatenation, and its total length as one more entry. */
export function layOutTokens(trajectories: readonly { tokenIds: ArrayLike<number> }[]): Int32Array {
  const offsets = new Int32Array(trajectories.length + 1);
  trajectories.forEach(({ tokenIds }, i) => {
    offsets[i + 1] = offsets[i]! + tokenIds.length;
  });
  return offsets;
}

/** Concatenates the arrays; a missing array becomes zeros. */
export function joinTokens(
  offsets: Int32Array,
  arrays: readonly (ArrayLike<number> | null | undefined)[],
): Float64Array {
  const flat = new Float64Array(offsets.at(-1)!);
  arrays.forEach((array, i) => {
    if (array) flat.set(array, offsets[i]!);
  });
  return flat;
}

/** Sum over each trajectory's tokens where the mask is 1. */
export function sumTokens(offsets: Int32Array, values: ArrayLike<number>, mask: ArrayLike<number>): number[] {
  return Array.from({ length: offsets.length - 1 }, (_, i) => {
    let sum = 0;
    for (let t = offsets[i]!; t < offsets[i + 1]!; t++) if (mask[t]) sum += values[t]!;
    return sum;
  });
}

/** Number of entries that are 1. */
export function countOnes(mask: ArrayLike<number>): number {
  let count = 0;
  for (let t = 0; t < mask.length; t++) count += mask[t]!;
  return count;
}
