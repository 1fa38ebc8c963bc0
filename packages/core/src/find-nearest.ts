/**
 * The known name with the smallest edit distance, if it is close; else the only one that contains all of the name's
 * words.
 */
export function findNearest(name: string, known: readonly string[]): string | undefined {
  let best: { name: string; distance: number } | undefined;
  for (const candidate of known) {
    const distance = measureDistance(name, candidate);
    if (!best || distance < best.distance) best = { name: candidate, distance };
  }
  if (best && best.distance <= Math.max(2, name.length / 3)) return best.name;
  const words = splitWords(name);
  const holding = [...new Set(known)].filter((candidate) => {
    const own = splitWords(candidate);
    return words.every((word) => own.includes(word));
  });
  return words.length > 1 && holding.length === 1 ? holding[0] : undefined;
}

/** Splits total_steps and totalSteps into words. */
function splitWords(name: string): string[] {
  return name
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean);
}

/** Levenshtein distance. */
function measureDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}
