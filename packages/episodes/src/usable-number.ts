/**
 * Largest absolute value of a reward, a score or a metric. Sums and squares over a whole run stay finite, and
 * rewards fit the single precision of training (up to 3.4e38).
 */
export const largestNumber = 1e30;

/** Description of `isUsableNumber` for errors. */
export const usableNumber = `a finite number, at most ${largestNumber} in size`;

/** True for a number that can be summed, squared and trained on. */
export function isUsableNumber(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= largestNumber;
}
