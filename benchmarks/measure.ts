export interface Timing {
  /** Milliseconds. */
  median: number;
  p95: number;
  runs: number;
}

export interface MeasureOptions {
  /** Rounds that are not counted. Default 3. */
  warmUp?: number;
  /** Counted rounds at least. Default 15. */
  minRounds?: number;
  /** Rounds go on up to this, in milliseconds. Default 2000. */
  budget?: number;
}

/** Runs contenders in turn, so that other work of the machine affects all of them alike. Synchronous functions only. */
export function measureInterleaved<K extends string>(
  contenders: Record<K, () => unknown>,
  { warmUp = 3, minRounds = 15, budget = 2000 }: MeasureOptions = {},
): Record<K, Timing> {
  const names = Object.keys(contenders) as K[];
  const times = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<K, number[]>;
  const started = performance.now();
  for (let round = 0; round < warmUp + minRounds || performance.now() - started < budget; round++) {
    // The order changes each round: no contender always runs after the one that fills the caches.
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round) % names.length]!;
      const start = performance.now();
      contenders[name]();
      if (round >= warmUp) times[name].push(performance.now() - start);
    }
  }
  return Object.fromEntries(names.map((name) => [name, summarize(times[name])])) as Record<K, Timing>;
}

function summarize(times: number[]): Timing {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  return { median: at(0.5), p95: at(0.95), runs: sorted.length };
}

/** A figure of each whole run, for example tokens per second. */
export interface Figures {
  median: number;
  values: number[];
}

/** Whole runs in turn, too long for `measureInterleaved`; each contender returns its own figure. */
export async function compareRuns<K extends string>(
  contenders: Record<K, () => Promise<number>>,
  { warmUp = 1, rounds = 5 }: { warmUp?: number; rounds?: number } = {},
): Promise<Record<K, Figures>> {
  const names = Object.keys(contenders) as K[];
  const values = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<K, number[]>;
  for (let round = 0; round < warmUp + rounds; round++)
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round) % names.length]!;
      const figure = await contenders[name]();
      if (round >= warmUp) values[name].push(figure);
    }
  const figures = (name: K): Figures => ({ median: median(values[name]), values: values[name] });
  return Object.fromEntries(names.map((name) => [name, figures(name)])) as Record<K, Figures>;
}

/** @throws RangeError without values. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError("a median needs at least one value");
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
