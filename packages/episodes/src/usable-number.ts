/**
 * The largest size of a reward, a score or a metric. Sums and squares of as many as a run has stay finite, and so does a
 * reward in the single precision of training (up to 3.4e38).
 */
export const largestNumber = 1e30;

/** In words, for errors. */
export const usableNumber = `a finite number, at most ${largestNumber} in size`;

/** Whether a value is a number that can be summed, squared and trained on. */
export function isUsableNumber(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= largestNumber;
}
