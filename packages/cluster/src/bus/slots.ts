import type { BusStats } from "./job-bus.js";

/** A bounded number of places, given in the order of requests. */
export class Slots {
  readonly #limit: number;
  readonly #stats: BusStats;
  readonly #queue = new Set<(taken: boolean) => void>();

  constructor(limit: number, stats: BusStats) {
    this.#limit = limit;
    this.#stats = stats;
  }

  /** Waits for a place. @returns false when the signal was aborted first. */
  async take(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#stats.outstanding < this.#limit) {
      this.#stats.outstanding++;
      return true;
    }
    this.#stats.waiting++;
    const taken = await new Promise<boolean>((resolve) => {
      this.#queue.add(resolve);
      signal.addEventListener("abort", () => this.#queue.delete(resolve) && resolve(false), { once: true });
    });
    this.#stats.waiting--;
    return taken;
  }

  release(): void {
    const next = this.#queue.values().next().value;
    if (next === undefined) {
      this.#stats.outstanding--;
      return;
    }
    this.#queue.delete(next);
    next(true);
  }
}
