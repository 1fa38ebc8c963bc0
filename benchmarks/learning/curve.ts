/** Held-out success by sampled tokens. */

export interface Point {
  /** Sampled until then. */
  tokens: number;
  /** Share of the held-out rows that are solved, 0 to 1. */
  success: number;
}

/** One run, its first point at 0 tokens. */
export type Curve = readonly Point[];

/** Success at a number of tokens: on a straight line between two points, and behind the last one as there. */
export function readSuccess(curve: Curve, tokens: number): number {
  const next = curve.findIndex((point) => point.tokens >= tokens);
  if (next === -1) return curve.at(-1)!.success;
  const after = curve[next]!;
  const before = curve[next - 1];
  if (!before || after.tokens === before.tokens) return after.success;
  const share = (tokens - before.tokens) / (after.tokens - before.tokens);
  return before.success + share * (after.success - before.success);
}

/**
 * Mean success over the first tokens: the area below the straight lines between the points, over its width. Runs with
 * points at other places compare, because each token counts alike.
 * @param budget width in tokens, above 0.
 */
export function averageSuccess(curve: Curve, budget: number): number {
  const inside = curve.filter(({ tokens }) => tokens < budget);
  const ends = [...inside, { tokens: budget, success: readSuccess(curve, budget) }];
  const area = ends
    .slice(1)
    .reduce((sum, { tokens, success }, i) => sum + ((success + ends[i]!.success) / 2) * (tokens - ends[i]!.tokens), 0);
  return area / budget;
}

/** Tokens at the first point with at least this success; infinite if none has it. */
export function findTokens(curve: Curve, success: number): number {
  return curve.find((point) => point.success >= success)?.tokens ?? Number.POSITIVE_INFINITY;
}
