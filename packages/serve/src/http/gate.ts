import { RequestError } from "../request-error.js";

export interface GateOptions {
  /** Calls of the model at once, at least 1. */
  running: number;
  /** Calls that may wait for their turn, first come, first served. */
  waiting: number;
}

/** Seconds after which a refused client may try again. */
const RETRY_AFTER = 1;

interface Waiting {
  enter: () => void;
  signal: AbortSignal;
}

/** Limits calls: `running` of them run at once, `waiting` more wait, the rest are refused with 429. */
export class Gate {
  private readonly queue = new Set<Waiting>();
  private pauses = 0;
  private idle: (() => void)[] = [];
  private inside = 0;

  constructor(private readonly options: GateOptions) {}

  get running(): number {
    return this.inside;
  }

  get waiting(): number {
    return this.queue.size;
  }

  /** @throws RequestError 429 when there is no room for `calls` more. */
  check(calls: number): void {
    const { running, waiting } = this.options;
    const free = Math.max(0, running - this.inside) + waiting - this.queue.size;
    if (calls <= free) return;
    throw new RequestError(429, "has no room left", {
      code: "serve/busy",
      subject: "server",
      expected: `at most ${running} running and ${waiting} waiting calls`,
      received: `${calls} more, with ${this.inside} running and ${this.queue.size} waiting`,
      remedy: `try again after ${RETRY_AFTER} s`,
      retryAfter: RETRY_AFTER,
    });
  }

  /**
   * Runs work when its turn comes.
   * @throws the signal's reason when it aborts before; RequestError 429 when there is no room to wait.
   */
  async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    if (this.pauses > 0 || this.inside >= this.options.running || this.queue.size > 0) await this.wait(signal);
    else this.inside++;
    try {
      return await work();
    } finally {
      this.inside--;
      this.next();
      if (this.inside === 0) for (const resolve of this.idle.splice(0)) resolve();
    }
  }

  /**
   * Lets no call enter and waits until all have left. Calls enter again after `resume`, which belongs to each `pause`.
   */
  async pause(): Promise<void> {
    this.pauses++;
    await this.drain();
  }

  resume(): void {
    this.pauses--;
    this.next();
  }

  /** Waits until nothing runs. */
  async drain(): Promise<void> {
    if (this.inside > 0) await new Promise<void>((resolve) => this.idle.push(resolve));
  }

  private wait(signal: AbortSignal): Promise<void> {
    this.check(1);
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        signal,
        enter: () => {
          signal.removeEventListener("abort", leave);
          resolve();
        },
      };
      const leave = () => {
        this.queue.delete(waiting);
        reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.queue.add(waiting);
    });
  }

  /** Counts a call as soon as it may enter, so that no other call takes its place. */
  private next(): void {
    for (const waiting of this.queue) {
      if (this.pauses > 0 || this.inside >= this.options.running) return;
      this.queue.delete(waiting);
      this.inside++;
      waiting.enter();
    }
  }
}
