/** Lets at most `count` holders in, first come, first served. */
export class Semaphore {
  private readonly queue: (() => void)[] = [];
  /** Index of the first in the queue: removing the front of a long list would move all of it. */
  private head = 0;

  constructor(private free: number) {}

  acquire(): Promise<void> {
    if (this.free > 0) {
      this.free--;
      return Promise.resolve();
    }
    return new Promise((resolve) => this.queue.push(resolve));
  }

  release(): void {
    const next = this.queue[this.head];
    if (!next) {
      this.free++;
      return;
    }
    this.head++;
    if (this.head === this.queue.length) {
      this.queue.length = 0;
      this.head = 0;
    }
    next();
  }
}
