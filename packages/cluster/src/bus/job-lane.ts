import type { JobHandler } from "./job-bus.js";

/** Number of failures in a row after which the lane pauses. */
const FAILURES_IN_ROW = 5;
/** A pause doubles with each further failure, at most this many times. */
const MOST_DOUBLINGS = 5;

/**
 * A worker's slots for one kind of jobs. A failing worker would take job after job, faster than any working one. So
 * after some failures in a row its slots close for a while; then it tries one job, and the first success opens all
 * slots again (a circuit breaker).
 */
export class JobLane {
  readonly #restMs: number;
  readonly #onChange: () => void;
  readonly #asking = new Set<(claimed: boolean) => void>();
  #open: number;
  #claimed = 0;
  #failures = 0;
  #rest?: NodeJS.Timeout;

  /** @param onChange called when slots open or close. */
  constructor(
    readonly handler: JobHandler,
    { restMs, onChange }: { restMs: number; onChange: () => void },
  ) {
    this.#open = handler.slots;
    this.#restMs = restMs;
    this.#onChange = onChange;
  }

  /** Slots that take jobs now. */
  get open(): number {
    return this.#open;
  }

  /** Waits for a free slot. @returns false when the signal was aborted first. */
  async claim(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#claimed < this.#open) {
      this.#claimed++;
      return true;
    }
    return new Promise((resolve) => {
      const leave = () => {
        this.#asking.delete(take);
        resolve(false);
      };
      const take = () => {
        signal.removeEventListener("abort", leave);
        resolve(true);
      };
      this.#asking.add(take);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  release(): void {
    this.#claimed--;
    this.#give();
  }

  /** Counts the outcome of a job. */
  ended(isDone: boolean): void {
    if (isDone) {
      this.#failures = 0;
      this.#set(this.handler.slots);
      return;
    }
    const beyond = ++this.#failures - FAILURES_IN_ROW;
    if (beyond < 0) return;
    this.#set(0);
    this.#rest = setTimeout(() => this.#set(1), this.#restMs * 2 ** Math.min(beyond, MOST_DOUBLINGS));
    this.#rest.unref();
  }

  close(): void {
    clearTimeout(this.#rest);
  }

  #set(open: number): void {
    clearTimeout(this.#rest);
    if (open === this.#open) return;
    this.#open = open;
    this.#onChange();
    this.#give();
  }

  #give(): void {
    for (const take of this.#asking) {
      if (this.#claimed >= this.#open) return;
      this.#asking.delete(take);
      this.#claimed++;
      take(true);
    }
  }
}
