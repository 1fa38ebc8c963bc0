/**
 * Exponential moving average without the pull to zero at its start. Gaps stay gaps.
 *
 * @param weight of earlier values: 0 (no smoothing) to below 1.
 */
export function smooth(values: readonly (number | null)[], weight: number): (number | null)[] {
  let sum = 0;
  let norm = 0;
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return null;
    sum = weight * sum + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    return sum / norm;
  });
}
