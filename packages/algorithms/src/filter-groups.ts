/**
 * Dynamic sampling (DAPO, Yu et al. 2025, arXiv:2503.14476): a group whose values are all equal has no advantage and
 * is not trained on. Returns the other groups, in order of appearance; a group of one is kept, because it has
 * nothing to be equal to.
 * @param minSpread difference of a group's largest and smallest value that it must exceed, 0 or more.
 */
export function keepVaryingGroups(groups: readonly string[], values: ArrayLike<number>, minSpread = 0): string[] {
  const ranges = new Map<string, { count: number; min: number; max: number }>();
  groups.forEach((group, i) => {
    const value = values[i]!;
    const range = ranges.get(group);
    if (range) {
      range.count++;
      range.min = Math.min(range.min, value);
      range.max = Math.max(range.max, value);
    } else ranges.set(group, { count: 1, min: value, max: value });
  });
  return [...ranges].filter(([, { count, min, max }]) => count === 1 || max - min > minSpread).map(([group]) => group);
}

/**
 * Keeps the groups of largest variance that together hold a share of the variance of all (RAGEN-2's top-p filter):
 * the fewest groups, from the largest variance down, whose variances add up to at least `share` of the sum. Returns
 * them in order of appearance; all of them if no group varies.
 * @param share in (0, 1].
 */
export function keepTopVariance(groups: readonly string[], values: ArrayLike<number>, share: number): string[] {
  const byGroup = new Map<string, number[]>();
  groups.forEach((group, i) => {
    byGroup.set(group, [...(byGroup.get(group) ?? []), values[i]!]);
  });
  const variances = [...byGroup].map(([group, own]) => {
    const mean = own.reduce((sum, value) => sum + value, 0) / own.length;
    return { group, variance: own.reduce((sum, value) => sum + (value - mean) ** 2, 0) / own.length };
  });
  const total = variances.reduce((sum, { variance }) => sum + variance, 0);
  const kept = new Set<string>();
  let held = 0;
  // The sort is stable: of equal variances the first groups are kept.
  for (const { group, variance } of [...variances].sort((a, b) => b.variance - a.variance)) {
    if (total > 0 && held >= share * total * (1 - ROUNDING)) break;
    held += variance;
    kept.add(group);
  }
  return [...byGroup.keys()].filter((group) => kept.has(group));
}

/** Relative error of a sum of variances. */
const ROUNDING = 1e-12;
