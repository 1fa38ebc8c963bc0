/**
 * Dynamic sampling (DAPO, Yu et al. 2025, arXiv:2503.14476): a group whose values are all equal has no advantage and
 * is not trained on. Returns the other groups, in order of appearance; a group of one is kept, because it has
 * nothing to be equal to.
 */
export function keepVaryingGroups(groups: readonly string[], values: ArrayLike<number>): string[] {
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
  return [...ranges].filter(([, { count, min, max }]) => count === 1 || max > min).map(([group]) => group);
}
