/** Statistics over the entries whose mask is 1; `values` and `mask` are equally long. */

/**
 * Mean of the masked-in values; 0 when there are none. Computed relative to the first one, so that equal values have
 * exactly that mean.
 */
export function maskedMean(values: ArrayLike<number>, mask: ArrayLike<number>): number {
  let first = 0;
  let sum = 0;
  let count = 0;
  for (let i = 0; i < values.length; i++) {
    if (!mask[i]) continue;
    if (count++ === 0) first = values[i]!;
    sum += values[i]! - first;
  }
  return count > 0 ? first + sum / count : 0;
}

/** Unbiased variance of the masked-in values; 0 when there are fewer than two. */
export function maskedVariance(values: ArrayLike<number>, mask: ArrayLike<number>): number {
  const mean = maskedMean(values, mask);
  let sum = 0;
  let count = 0;
  for (let i = 0; i < values.length; i++) {
    if (!mask[i]) continue;
    sum += (values[i]! - mean) ** 2;
    count++;
  }
  return count > 1 ? sum / (count - 1) : 0;
}

/**
 * (x - mean) / sqrt(variance + 1e-8) over the mask, 0 outside it.
 * @param shiftMean false only scales: the mean is unchanged.
 */
export function maskedWhiten(values: ArrayLike<number>, mask: ArrayLike<number>, shiftMean = true): Float64Array {
  const mean = maskedMean(values, mask);
  const scale = 1 / Math.sqrt(maskedVariance(values, mask) + 1e-8);
  const offset = shiftMean ? 0 : mean;
  return Float64Array.from(values, (value, i) => (mask[i] ? (value - mean) * scale + offset : 0));
}
