import type { Delivery, JobQueue } from "../bus/bus-store.js";
import type { JobKindName } from "../bus/job-bus.js";

interface Item {
  key: string;
  kind: JobKindName;
  data: Uint8Array;
  /** Runs while the job is in hand or waits to be delivered again. */
  timer?: NodeJS.Timeout;
}

/** A queue in memory: the first request gets the oldest job. */
export class LocalQueue implements JobQueue {
  readonly #ackWaitMs: number;
  readonly #items = new Map<string, Item>();
  readonly #ready = new Set<Item>();
  readonly #asking = new Set<{ kind: JobKindName; give: (item: Item) => void }>();

  constructor(ackWaitMs: number) {
    this.#ackWaitMs = ackWaitMs;
  }

  async put(kind: JobKindName, id: string, data: Uint8Array): Promise<void> {
    const key = `${kind}.${id}`;
    if (this.#items.has(key)) return;
    const item = { key, kind, data };
    this.#items.set(key, item);
    this.#offer(item);
  }

  async remove(kind: JobKindName, id: string): Promise<void> {
    const item = this.#items.get(`${kind}.${id}`);
    if (item) this.#drop(item);
  }

  async pull(kind: JobKindName, signal: AbortSignal): Promise<Delivery | undefined> {
    if (signal.aborted) return undefined;
    for (const item of this.#ready) {
      if (item.kind === kind) return this.#deliver(item);
    }
    return new Promise((resolve) => {
      const leave = () => {
        this.#asking.delete(asker);
        resolve(undefined);
      };
      const asker = {
        kind,
        give: (item: Item) => {
          signal.removeEventListener("abort", leave);
          this.#asking.delete(asker);
          resolve(this.#deliver(item));
        },
      };
      this.#asking.add(asker);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  #offer(item: Item): void {
    clearTimeout(item.timer);
    if (this.#items.get(item.key) !== item) return;
    this.#ready.add(item);
    for (const asker of this.#asking) {
      if (asker.kind !== item.kind) continue;
      asker.give(item);
      return;
    }
  }

  #offerAfter(item: Item, delayMs: number): void {
    clearTimeout(item.timer);
    item.timer = setTimeout(() => this.#offer(item), delayMs);
    item.timer.unref();
  }

  #deliver(item: Item): Delivery {
    this.#ready.delete(item);
    this.#offerAfter(item, this.#ackWaitMs);
    return {
      data: item.data,
      ack: () => this.#drop(item),
      retry: (delayMs) => this.#offerAfter(item, delayMs),
      working: () => this.#items.get(item.key) === item && this.#offerAfter(item, this.#ackWaitMs),
    };
  }

  #drop(item: Item): void {
    clearTimeout(item.timer);
    this.#ready.delete(item);
    if (this.#items.get(item.key) === item) this.#items.delete(item.key);
  }
}
