import { setMaxListeners } from "node:events";
import { ClusterError } from "@cria/core";
import type { BusStore, JobQueue, Records } from "../bus/bus-store.js";
import { type BusTimes, defaultTimes } from "../bus/job-bus.js";
import { LocalBlobs } from "./local-blobs.js";
import { LocalQueue } from "./local-queue.js";
import { LocalRecords } from "./local-records.js";

/** Data that the buses of one process share. */
export class LocalHub {
  readonly times: BusTimes;
  readonly queue: LocalQueue;
  readonly jobs = new LocalRecords();
  readonly workers: LocalRecords;
  readonly control = new LocalRecords();
  readonly blobs: LocalBlobs;

  /** @param maxBlobBytes bytes of all blobs together; default: 4 GiB. */
  constructor(times: Partial<BusTimes> = {}, maxBlobBytes = 4 * 2 ** 30) {
    this.times = { ...defaultTimes, ...times };
    this.queue = new LocalQueue(this.times.ackWaitMs);
    this.workers = new LocalRecords(this.times.presenceMs);
    this.blobs = new LocalBlobs(maxBlobBytes);
  }
}

/** One connection to a hub. After `close` it is as silent as the connection of a dead process. */
export function connectLocally(hub: LocalHub): BusStore {
  const end = new AbortController();
  const closed = end.signal;
  const checkOpen = () => {
    if (closed.aborted) throw new ClusterError("is closed", { code: "cluster/closed", subject: "the local bus" });
  };
  // One combined signal for each given one: there are thousands of pulls.
  const combined = new WeakMap<AbortSignal, AbortSignal>();
  const orClosed = (signal: AbortSignal): AbortSignal => {
    const known = combined.get(signal) ?? AbortSignal.any([signal, closed]);
    // Every slot adds a listener.
    setMaxListeners(0, known);
    combined.set(signal, known);
    // Each slot of a worker adds a listener.
    setMaxListeners(0, known);
    return known;
  };
  const connectRecords = (records: LocalRecords): Records => ({
    async get(key) {
      checkOpen();
      return records.get(key);
    },
    async set(key, text, seen) {
      checkOpen();
      return records.set(key, text, seen);
    },
    async delete(key) {
      checkOpen();
      return records.delete(key);
    },
    async watch(from, onChange, signal) {
      checkOpen();
      return records.watch(from, onChange, orClosed(signal));
    },
  });
  const queue: JobQueue = {
    async put(kind, id, data) {
      checkOpen();
      return hub.queue.put(kind, id, data);
    },
    async remove(kind, id) {
      checkOpen();
      return hub.queue.remove(kind, id);
    },
    async pull(kind, signal) {
      checkOpen();
      const delivery = await hub.queue.pull(kind, orClosed(signal));
      if (!delivery) return undefined;
      const alive = (say: () => void) => () => void (closed.aborted || say());
      return {
        data: delivery.data,
        ack: alive(delivery.ack),
        retry: (delayMs) => alive(() => delivery.retry(delayMs))(),
        working: alive(delivery.working),
      };
    },
  };
  return {
    times: hub.times,
    queue,
    jobs: connectRecords(hub.jobs),
    workers: connectRecords(hub.workers),
    control: connectRecords(hub.control),
    blobs: hub.blobs,
    onReconnect: () => {},
    onLoss: () => {},
    closed,
    async close() {
      end.abort();
    },
  };
}
