interface Event {
  at: number;
  order: number;
  run(at: number): void;
}

/** Runs what was planned in the order of time; at one time, in the order of planning. */
export class Events {
  private readonly heap: Event[] = [];
  private order = 0;

  /** @param at seconds; not before what runs now. */
  plan(at: number, run: (at: number) => void): void {
    const { heap } = this;
    heap.push({ at, order: this.order++, run });
    for (let i = heap.length - 1; i > 0; ) {
      const parent = (i - 1) >> 1;
      if (!isBefore(heap[i]!, heap[parent]!)) break;
      [heap[i], heap[parent]] = [heap[parent]!, heap[i]!];
      i = parent;
    }
  }

  /** Until nothing is planned. */
  run(): void {
    for (let next = this.take(); next; next = this.take()) next.run(next.at);
  }

  private take(): Event | undefined {
    const { heap } = this;
    const first = heap[0];
    const last = heap.pop();
    if (heap.length === 0 || !last) return first;
    heap[0] = last;
    for (let i = 0; ; ) {
      let least = i;
      for (const child of [2 * i + 1, 2 * i + 2])
        if (child < heap.length && isBefore(heap[child]!, heap[least]!)) least = child;
      if (least === i) return first;
      [heap[i], heap[least]] = [heap[least]!, heap[i]!];
      i = least;
    }
  }
}

const isBefore = (a: Event, b: Event) => a.at < b.at || (a.at === b.at && a.order < b.order);
