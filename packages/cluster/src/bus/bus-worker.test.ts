import { expect, it, vi } from "vitest";
import { connectLocally, LocalHub } from "../local/local-store.js";
import { double, rollout } from "../testing/test-jobs.js";
import { openBus } from "./open-bus.js";

const waitFor = <T>(check: () => T | Promise<T>) => vi.waitFor(check, { timeout: 10_000, interval: 20 });

it("reports an outage of the queue once, however many slots ask", async () => {
  const hub = new LocalHub();
  const store = connectLocally(hub);
  let isDown = false;
  let failed = 0;
  /** Ends the open requests: they expire, or fail. */
  const open: ((error?: Error) => void)[] = [];
  const { queue } = store;
  const pull: typeof queue.pull = async (kind, signal) => {
    if (isDown) {
      failed++;
      throw new Error("no responders");
    }
    const cut = new AbortController();
    const ended = new Promise<undefined>((resolve, reject) => {
      open.push((error) => {
        cut.abort();
        if (error) reject(error);
        else resolve(undefined);
      });
    });
    return Promise.race([queue.pull(kind, AbortSignal.any([signal, cut.signal])), ended]);
  };
  const problems: string[] = [];
  const machine = openBus({ ...store, queue: { ...queue, pull } }, { onProblem: ({ code }) => problems.push(code) });
  const coordinator = openBus(connectLocally(hub));
  const kinds = [rollout, { ...rollout, name: "score" as const }];
  const jobs = kinds.map((kind) => ({ kind, slots: 4, run: double }));
  await machine.work({ id: "a", class: "c", versions: {}, jobs });
  for (const outage of [1, 2]) {
    await waitFor(() => expect(open.length).toBeGreaterThanOrEqual(8));
    isDown = true;
    failed = 0;
    for (const end of open.splice(0)) end(new Error("connection lost"));
    // Each slot has asked again.
    await waitFor(() => expect(failed).toBeGreaterThanOrEqual(8));
    isDown = false;
    expect(problems).toEqual(Array(outage).fill("cluster/worker"));
    await waitFor(() => expect(open).toHaveLength(8));
    for (const end of open.splice(0)) end();
    expect((await coordinator.submit(rollout, { row: outage })).value.answer).toBe(2 * outage);
  }
  await machine.close();
  await coordinator.close();
});
