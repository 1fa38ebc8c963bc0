/**
 * Policy filtration (PF-PPO, Zhang et al. 2024, arXiv:2409.06957): trains more often on conversations whose reward is
 * more reliable. The batch is sampled from itself, with replacement, by weights of the scores:
 *
 *     pow         |score|^weightPow
 *     max_min     1 for the batch's best and worst, 0 for those in between
 *     max_random  0.4 for the best, 0.1 for all others
 */
export const reweightMethods = ["pow", "max_min", "max_random"] as const;

export interface PolicyFiltration {
  method: (typeof reweightMethods)[number];
  /** Exponent of pow. */
  weightPow: number;
}

/**
 * Samples as many indices of conversations as there are scores, in ascending order; some occur several times, others
 * not at all.
 * @param random uniform in [0, 1).
 */
export function resampleByScore(
  scores: readonly number[],
  { method, weightPow }: PolicyFiltration,
  random: () => number,
): number[] {
  const best = scores.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const worst = scores.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const weights = scores.map((score) => {
    if (method === "pow") return Math.abs(score) ** weightPow;
    if (method === "max_min") return score === best || score === worst ? 1 : 0;
    return score === best ? 0.4 : 0.1;
  });
  // Scores that are all 0 carry no information: all are equally likely. A large power must not overflow.
  const largest = weights.reduce((a, b) => Math.max(a, b), 0);
  const cumulative: number[] = [];
  for (const weight of weights) {
    const share =
      largest === 0 ? 1 : largest === Number.POSITIVE_INFINITY ? Number(weight === largest) : weight / largest;
    cumulative.push((cumulative.at(-1) ?? 0) + share);
  }
  const total = cumulative.at(-1) ?? 0;
  const draws = scores.map(() => {
    const at = random() * total;
    const index = cumulative.findIndex((end) => end > at);
    return index < 0 ? scores.length - 1 : index;
  });
  return draws.sort((a, b) => a - b);
}
