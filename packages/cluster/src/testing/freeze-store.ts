import type { BusStore, Delivery, Records } from "../bus/bus-store.js";

/** A worker's process that can be stopped as by SIGSTOP: its connection stays, and messages wait until it resumes. */
export interface Freezable {
  store: BusStore;
  freeze(): void;
  thaw(): void;
  /** Jobs delivered to it while it was frozen. */
  readonly swallowed: number;
}

/** Wraps a store. */
export function makeFreezable(inner: BusStore): Freezable {
  let thawed = Promise.resolve();
  let thaw = () => {};
  let isFrozen = false;
  let swallowed = 0;
  /** Delays an answer until the process resumes. */
  const late = async <T>(answer: Promise<T>): Promise<T> => {
    const value = await answer;
    await thawed;
    return value;
  };
  const say = (what: () => void) => {
    if (isFrozen) void thawed.then(what);
    else what();
  };
  const slow = (records: Records): Records => ({
    get: (key) => late(thawed.then(() => records.get(key))),
    set: (key, text, seen) => late(thawed.then(() => records.set(key, text, seen))),
    delete: (key) => late(thawed.then(() => records.delete(key))),
    watch: (...given) => records.watch(...given),
  });
  const slowDown = ({ data, ack, retry, working }: Delivery): Delivery => ({
    data,
    ack: () => say(ack),
    retry: (delayMs) => say(() => retry(delayMs)),
    working: () => say(working),
  });
  const store: BusStore = {
    ...inner,
    queue: {
      put: (...given) => inner.queue.put(...given),
      remove: (...given) => inner.queue.remove(...given),
      async pull(kind, signal) {
        const delivery = await inner.queue.pull(kind, signal);
        if (isFrozen && delivery) swallowed++;
        await thawed;
        return delivery && slowDown(delivery);
      },
    },
    jobs: slow(inner.jobs),
    workers: slow(inner.workers),
  };
  return {
    store,
    freeze() {
      isFrozen = true;
      thawed = new Promise((resolve) => {
        thaw = resolve;
      });
    },
    thaw() {
      isFrozen = false;
      thaw();
    },
    get swallowed() {
      return swallowed;
    },
  };
}
