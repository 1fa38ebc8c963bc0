export interface MemorySample {
  /** Time since the start of the run. */
  seconds: number;
  /** Resident set of the process, bytes. */
  rss: number;
  /** V8's heap in use and memory of typed arrays outside it, bytes. */
  heap: number;
  external: number;
}

export interface MemoryTrend {
  /** Samples before this time count as warm-up. */
  warmUpSeconds: number;
  /** Medians of RSS over the first and the last third of the time after the warm-up, bytes. */
  first: number;
  last: number;
  growth: number;
  /** Median of the slopes between all pairs of samples (Theil, 1950), bytes per hour. */
  slope: number;
}

/**
 * Trend of RSS after the warm-up (the first quarter of the run). Uses medians and a median slope, because single
 * samples jump with the garbage collector; null with too few samples.
 */
export function measureMemoryTrend(samples: readonly MemorySample[]): MemoryTrend | null {
  const warmUpSeconds = (samples.at(-1)?.seconds ?? 0) / 4;
  const steady = samples.filter(({ seconds }) => seconds >= warmUpSeconds);
  const third = Math.floor(steady.length / 3);
  if (third < 2) return null;
  const first = findMedian(steady.slice(0, third).map(({ rss }) => rss));
  const last = findMedian(steady.slice(-third).map(({ rss }) => rss));
  const slopes: number[] = [];
  for (const [i, a] of steady.entries())
    for (const b of steady.slice(i + 1))
      if (b.seconds > a.seconds) slopes.push((b.rss - a.rss) / (b.seconds - a.seconds));
  return { warmUpSeconds, first, last, growth: last - first, slope: findMedian(slopes) * 3600 };
}

function findMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
