/** Admits at most `count` holders at a time: lowest rank first, first come, first served within a rank. */
export class Semaphore {
  private readonly queues = new Map<number, Queue>();

  constructor(private free: number) {}

  /** @param rank lower ranks are admitted first; default 0. */
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
    // There are few ranks: one for each step in progress.
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
  /** Index of the first entry: removing the front of a long array would move all others. */
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
