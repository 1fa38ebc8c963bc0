import type { ClusterError } from "@cria/core";
import { expect, it, vi } from "vitest";
import { connectLocally, LocalHub } from "../local/local-store.js";
import { Directory, MOST_SLOTS, MOST_WORKERS, writePresence } from "./directory.js";
import type { WorkerInfo } from "./job-bus.js";

const describeWorker = (id: string, slots = 1): WorkerInfo => ({
  id,
  host: "h",
  class: "c",
  versions: {},
  slots: { rollout: slots },
  doing: [],
  done: 0,
  failed: 0,
  declined: 0,
  oldestS: 0,
  lastFailure: null,
  draining: false,
  lacks: [],
});

async function open() {
  const store = connectLocally(new LocalHub({ presenceMs: 60_000 }));
  const problems: ClusterError[] = [];
  const directory = new Directory(store, (problem) => problems.push(problem));
  const changed = vi.fn();
  await directory.watch(changed, new AbortController().signal);
  const say = (info: WorkerInfo) => store.workers.set(info.id, writePresence(info));
  return { store, problems, directory, changed, say };
}

it("lists a bounded number of workers, warns once, and takes others when there is room", async () => {
  const { store, problems, directory, changed, say } = await open();
  const ids = Array.from({ length: 2 * MOST_WORKERS }, (_, i) => `w${i}`);
  await Promise.all(ids.map((id) => say(describeWorker(id))));
  expect(await directory.list()).toHaveLength(MOST_WORKERS);
  expect(problems.map(({ code }) => code)).toEqual(["cluster/too-many-workers"]);
  // Known workers are still updated.
  await say({ ...describeWorker("w0"), done: 5 });
  await vi.waitFor(async () => expect((await directory.list()).find(({ id }) => id === "w0")?.done).toBe(5));
  await store.workers.delete("w0");
  await say(describeWorker("late"));
  await vi.waitFor(async () => expect((await directory.list()).map(({ id }) => id)).toContain("late"));
  // Listeners are not called for each of them.
  await vi.waitFor(() => expect(changed).toHaveBeenCalled());
  expect(changed.mock.calls.length).toBeLessThan(MOST_WORKERS / 4);
  await store.close();
});

it("refuses a worker that reports too many slots", async () => {
  const { store, problems, directory, say } = await open();
  await say(describeWorker("many", MOST_SLOTS + 1));
  await say(describeWorker("most", MOST_SLOTS));
  await vi.waitFor(async () => expect((await directory.list()).map(({ id }) => id)).toEqual(["most"]));
  expect(problems.map(({ code, subject }) => [code, subject])).toEqual([["cluster/invalid-message", "worker many"]]);
  await store.close();
});
