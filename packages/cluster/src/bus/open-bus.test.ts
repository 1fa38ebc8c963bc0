import { expect, it, vi } from "vitest";
import { connectLocally, LocalHub } from "../local/local-store.js";
import type { BusStore, Records } from "./bus-store.js";
import { openBus } from "./open-bus.js";

/** The first call of each kind gets no answer, as of a server that is busy. */
function deafen(store: BusStore): BusStore {
  const once = <Given extends unknown[], Answer>(ask: (...given: Given) => Promise<Answer>) => {
    let isFirst = true;
    return async (...given: Given) => {
      if (!isFirst) return ask(...given);
      isFirst = false;
      throw new Error("timeout");
    };
  };
  const deafenRecords = (records: Records): Records => ({
    get: (key) => records.get(key),
    set: once((key, text, seen) => records.set(key, text, seen)),
    delete: (key) => records.delete(key),
    watch: once((from, onChange, signal) => records.watch(from, onChange, signal)),
  });
  return { ...store, workers: deafenRecords(store.workers), control: deafenRecords(store.control) };
}

it("accepts a process whose first request gets no answer", async () => {
  const hub = new LocalHub();
  const [coordinator, worker] = [openBus(deafen(connectLocally(hub))), openBus(deafen(connectLocally(hub)))];
  const leaving = new AbortController();
  const seen: string[][] = [];
  const versions: number[] = [];
  await coordinator.watchWorkers((workers) => seen.push(workers.map(({ id }) => id)), leaving.signal);
  await worker.watchPolicy(({ version }) => versions.push(version), leaving.signal);
  await worker.work({ id: "one", class: "", versions: {}, jobs: [] });
  const sha = "a".repeat(64);
  await coordinator.publishPolicy({ run: sha, version: 7, weights: sha }, undefined);
  await vi.waitFor(() => {
    expect(seen.at(-1)).toEqual(["one"]);
    expect(versions).toEqual([7]);
  });
  leaving.abort();
  await Promise.all([coordinator.close(), worker.close()]);
});
