/** log r = clamp(logprob - oldLogprob, ±20), so that its exp is finite, and no token explodes. */
export function clampLogRatio(logprob: number, oldLogprob: number): number {
  return Math.max(-20, Math.min(20, logprob - oldLogprob));
}

/** True if the log-ratio is within the clamp above; outside of it the derivative is 0. */
export function isWithinClamp(logprob: number, oldLogprob: number): boolean {
  return Math.abs(logprob - oldLogprob) <= 20;
}

/** clip(r, 1 - low, 1 + high). */
export function clipRatio(ratio: number, low: number, high: number): number {
  return Math.max(1 - low, Math.min(1 + high, ratio));
}
