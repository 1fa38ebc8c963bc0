/** Lets at most `count` holders in: those of the lowest rank first, and of one rank first come, first served. */
export class Semaphore {
  private readonly queues = new Map<number, Queue>();

  constructor(private free: number) {}

  /** @param rank that of others who wait at the same time may be another; default 0. */
  acquire(rank = 0): Promise<void> {
    if (this.free > 0) {
      this.free--;
      return Promise.resolve();
    }
    const queue = this.queues.get(rank) ?? new Queue();
    this.queues.set(rank, queue);
    return new Promise((resolve) => queue.add(resolve));
  }

  release(): void {
    // There are as many ranks as steps are under way: a few.
    const rank = Math.min(...this.queues.keys());
    const queue = this.queues.get(rank);
    if (!queue) {
      this.free++;
      return;
    }
    const next = queue.take();
    if (queue.isEmpty) this.queues.delete(rank);
    next();
  }
}

class Queue {
  private readonly waiting: (() => void)[] = [];
  /** Index of the first: removing the front of a long list would move all of it. */
  private head = 0;

  get isEmpty(): boolean {
    return this.head === this.waiting.length;
  }

  add(resolve: () => void): void {
    this.waiting.push(resolve);
  }

  take(): () => void {
    return this.waiting[this.head++]!;
  }
}
