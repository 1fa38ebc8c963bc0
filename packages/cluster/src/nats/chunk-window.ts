/** Most chunks in flight over one connection: 16 of 128 KiB are 2 MiB of memory. */
const MOST = 16;
/**
 * Longest delay that chunks should cause for other messages of the connection (heartbeats, leases), in milliseconds.
 */
const SLOW_MS = 500;

/**
 * Bounds the chunks in flight over one connection, sent and not yet acknowledged. It begins with one, and grows with
 * each that is acknowledged in time; when one is late it halves. A slow line has one chunk at a time, a fast one is
 * kept full.
 */
export class ChunkWindow {
  #size = 1;
  #taken = 0;
  #narrowed = Number.NEGATIVE_INFINITY;
  readonly #waiting: (() => void)[] = [];

  /** Most chunks in flight. */
  get size(): number {
    return this.#size;
  }

  /** Waits for a place, in the order of calls. */
  async enter(): Promise<void> {
    if (this.#taken < this.#size) {
      this.#taken++;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Gives the place back. */
  leave(): void {
    this.#taken--;
    while (this.#taken < this.#size) {
      const next = this.#waiting.shift();
      if (!next) return;
      this.#taken++;
      next();
    }
  }

  /**
   * Adapts the size to a chunk, before its place is given back.
   * @param sent time of sending, and `now`: milliseconds of one clock.
   * @param arrived true if it was acknowledged.
   */
  learn(sent: number, now: number, arrived: boolean): void {
    if (arrived && now - sent <= SLOW_MS) {
      this.#size = Math.min(MOST, this.#size + 1);
    } else if (sent >= this.#narrowed) {
      // Chunks that were sent before the last halving are late for the same reason.
      this.#size = Math.max(1, Math.floor(this.#size / 2));
      this.#narrowed = now;
    }
  }
}
