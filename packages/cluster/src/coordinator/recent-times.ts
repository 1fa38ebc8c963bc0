/** Number of durations kept. */
const KEPT = 101;

/** Durations of the last pieces of work. */
export class RecentTimes {
  private readonly times: number[] = [];
  private next = 0;
  /** Cached median; undefined: not computed yet. */
  private found: number | undefined;

  add(time: number): void {
    this.times[this.next] = time;
    this.next = (this.next + 1) % KEPT;
    this.found = undefined;
  }

  /** Undefined without durations. */
  median(): number | undefined {
    this.found ??= this.times.toSorted((a, b) => a - b)[this.times.length >> 1];
    return this.found;
  }
}
