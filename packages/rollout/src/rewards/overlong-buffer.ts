/** Soft punishment of long responses (DAPO, arXiv:2503.14476, eq. 13). */
export interface OverlongBuffer {
  /** Number of tokens before the longest response over which the penalty grows. */
  length: number;
  /** The penalty at the longest response. */
  penaltyFactor: number;
  /** Also give the penalty as extra keys `overlong_reward` and `overlong`. */
  log: boolean;
}

/**
 * min(0, -(response - (longest - length)) / length · penaltyFactor): 0 up to the start of the buffer, then linear
 * down to -penaltyFactor at the longest response.
 * @param responseLength tokens after the prompt, observations included: all of them use up the budget.
 */
export function computeOverlongPenalty(responseLength: number, longest: number, buffer: OverlongBuffer): number {
  const exceeded = responseLength - (longest - buffer.length);
  return exceeded > 0 ? (-exceeded / buffer.length) * buffer.penaltyFactor : 0;
}
