/** How many are kept. */
const KEPT = 101;

/** What the last pieces of work took. */
export class RecentTimes {
  private readonly times: number[] = [];
  private next = 0;
  /** Undefined: to be found anew. */
  private found: number | undefined;

  add(time: number): void {
    this.times[this.next] = time;
    this.next = (this.next + 1) % KEPT;
    this.found = undefined;
  }

  /** Undefined where there is none. */
  median(): number | undefined {
    this.found ??= this.times.toSorted((a, b) => a - b)[this.times.length >> 1];
    return this.found;
  }
}
