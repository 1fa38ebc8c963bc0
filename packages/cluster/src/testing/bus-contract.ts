import { hostname } from "node:os";
import { ClusterError } from "@cria/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { BusStore } from "../bus/bus-store.js";
import type { BusOptions, BusTimes, JobBus, PublishedPolicy, WorkerInfo } from "../bus/job-bus.js";
import { claimKey, claimOf, hashText, jobId, toCanonicalJson } from "../bus/job-record.js";
import { openBus } from "../bus/open-bus.js";
import { makeFreezable } from "./freeze-store.js";
import { double, type Handler, hang, join, quickTimes, rollout } from "./test-jobs.js";

/** Opens buses of one kind: one world of machines for each test. */
export interface BusWorld {
  /** One machine's connection; the first is a coordinator's. */
  connect(): Promise<BusStore>;
  /** Changes bytes of a stored blob without the bus. */
  damage(sha: string): Promise<void>;
}

export { double, hang, join, quickTimes, rollout };

const waitFor = <T>(check: () => T | Promise<T>) => vi.waitFor(check, { timeout: 20_000, interval: 20 });
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail("it was not rejected"),
    (error) => error as ClusterError,
  );

function makeGate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

/**
 * The contract of every bus.
 * @param openWorld makes a world without jobs; with other times than `quickTimes` where a test asks.
 */
export function describeBus(openWorld: (times: BusTimes) => BusWorld): void {
  let world: BusWorld;
  let stores: BusStore[];
  let buses: JobBus[];
  let problems: ClusterError[];
  let coordinator: JobBus;

  const connect = async (options: BusOptions = {}, change = (store: BusStore) => store) => {
    const store = change(await world.connect());
    const bus = openBus(store, { onProblem: (problem) => problems.push(problem), ...options });
    stores.push(store);
    buses.push(bus);
    return { bus, store };
  };
  const begin = async (times: Partial<BusTimes> = {}) => {
    world = openWorld({ ...quickTimes, ...times });
    stores = [];
    buses = [];
    problems = [];
    ({ bus: coordinator } = await connect());
  };
  beforeEach(() => begin());
  afterEach(async () => {
    await Promise.all(buses.map((bus) => bus.close()));
  });

  describe("jobs", () => {
    it("are done once each, by a free worker", async () => {
      const done: number[] = [];
      for (const id of ["a", "b", "c"]) {
        await join(
          (await connect()).bus,
          id,
          async ({ row }) => {
            done.push(row);
            return { value: { answer: 2 * row }, meta: { by: id } };
          },
          2,
        );
      }
      const rows = Array.from({ length: 30 }, (_, row) => row);
      const results = await Promise.all(rows.map((row) => coordinator.submit(rollout, { row })));
      expect(results.map(({ value }) => value.answer)).toEqual(rows.map((row) => 2 * row));
      expect(results.every(({ tries, worker, meta }) => tries === 1 && (meta as { by: string }).by === worker)).toBe(
        true,
      );
      expect(done.sort((left, right) => left - right)).toEqual(rows);
      expect(coordinator.stats).toMatchObject({ submitted: 30, done: 30, failed: 0, outstanding: 0, waiting: 0 });
      expect(problems).toEqual([]);
    });

    it("of a worker that died are done by another", async () => {
      const dying = await connect();
      const begun = vi.fn(hang);
      await join(dying.bus, "dying", begun, 2);
      const results = [1, 2].map((row) => coordinator.submit(rollout, { row }));
      await waitFor(() => expect(begun).toHaveBeenCalledTimes(2));
      await dying.store.close();
      await join((await connect()).bus, "next", double);
      expect(await Promise.all(results)).toMatchObject([
        { value: { answer: 2 }, tries: 2, worker: "next" },
        { value: { answer: 4 }, tries: 2, worker: "next" },
      ]);
      expect(coordinator.stats.retries).toBe(2);
    });

    it("may take longer than the wait for an acknowledgement", async () => {
      const begun = vi.fn<Handler["run"]>(async () => {
        await new Promise((resolve) => setTimeout(resolve, 2 * quickTimes.ackWaitMs));
        return { value: { answer: 7 } };
      });
      for (const id of ["a", "b"]) await join((await connect()).bus, id, begun);
      expect(await coordinator.submit(rollout, { row: 1 })).toMatchObject({ value: { answer: 7 }, tries: 1 });
      expect(begun).toHaveBeenCalledTimes(1);
    });

    it("of a worker that is frozen are done by another, which has as many slots", async () => {
      let frozen = makeFreezable(stores[0]!);
      const { bus } = await connect({}, (store) => {
        frozen = makeFreezable(store);
        return frozen.store;
      });
      const begun = vi.fn(hang);
      await join(bus, "frozen", begun, 64);
      const results = [1, 2, 3].map((row) => coordinator.submit(rollout, { row }));
      await waitFor(() => expect(begun).toHaveBeenCalledTimes(3));
      frozen.freeze();
      await join((await connect()).bus, "next", double, 64);
      expect(await Promise.all(results)).toMatchObject(
        [1, 2, 3].map((row) => ({ value: { answer: 2 * row }, worker: "next", tries: 2 })),
      );
      // It has few open requests, so few jobs are given to it in vain.
      expect(frozen.swallowed).toBeLessThanOrEqual(4);
      frozen.thaw();
      await waitFor(async () => {
        const workers = await coordinator.listWorkers();
        expect(workers.find(({ id }) => id === "frozen")).toMatchObject({ doing: [], done: 0, failed: 0 });
      });
      expect(begun).toHaveBeenCalledTimes(3);
    });

    it("that are given again to the worker that has them in hand are not begun twice", async () => {
      let frozen = makeFreezable(stores[0]!);
      const { bus } = await connect({}, (store) => {
        frozen = makeFreezable(store);
        return frozen.store;
      });
      const gate = makeGate();
      const begun = vi.fn<Handler["run"]>(async ({ row }) => {
        await gate.opened;
        return { value: { answer: row } };
      });
      await join(bus, "frozen", begun, 8);
      const results = [1, 2, 3].map((row) => coordinator.submit(rollout, { row }, { maxTries: 1 }));
      await waitFor(() => expect(begun).toHaveBeenCalledTimes(3));
      frozen.freeze();
      await waitFor(() => expect(frozen.swallowed).toBeGreaterThanOrEqual(3));
      frozen.thaw();
      const { store } = await connect();
      const queued = { protocol: 1, kind: "rollout", payload: { row: 4 }, maxTries: 1, trace: {} };
      await store.queue.put("rollout", "4", Buffer.from(JSON.stringify({ ...queued, id: "4" })));
      // Earlier messages have been read by then.
      await waitFor(() => expect(problems).toMatchObject([{ code: "cluster/invalid-message" }]));
      gate.open();
      expect(await Promise.all(results)).toMatchObject([1, 2, 3].map((row) => ({ value: { answer: row }, tries: 1 })));
      expect(begun).toHaveBeenCalledTimes(3);
    });

    it("that fail are done by a worker that has not failed at them, and given up if there is none", async () => {
      const begun = { a: 0, b: 0 };
      const fail = (id: "a" | "b"): Handler["run"] => {
        return async ({ row }, context) => {
          if (id === "b" && row === 2) return double({ row }, context);
          throw new Error(`no luck ${id}${++begun[id]}`);
        };
      };
      const workers = [];
      for (const id of ["a", "b"] as const) workers.push(await join((await connect()).bus, id, fail(id)));
      const error = await failure(coordinator.submit(rollout, { row: 1 }, { maxTries: 9 }));
      expect(error).toMatchObject({
        code: "cluster/given-up",
        received: expect.stringMatching(/^from worker [ab]: no luck [ab]1$/),
      });
      expect(begun).toEqual({ a: 1, b: 1 });
      expect(error.subject).toBe(`job rollout ${jobId("rollout", { row: 1 }).slice(0, 12)}`);
      expect(await coordinator.submit(rollout, { row: 2 })).toMatchObject({ worker: "b" });
      await Promise.all(workers.map((worker) => worker.drain()));
      await join((await connect()).bus, "able", double);
      expect(await coordinator.submit(rollout, { row: 1 })).toMatchObject({ value: { answer: 2 }, tries: 1 });
    });

    it("are given up after some tries, with the last reason", async () => {
      for (const id of ["a", "b", "c"])
        await join((await connect()).bus, id, async () => {
          throw new Error(`no luck of ${id}`);
        });
      const error = await failure(coordinator.submit(rollout, { row: 1 }, { maxTries: 2 }));
      expect(error).toMatchObject({ code: "cluster/given-up", expected: "a result within 2 tries" });
    });

    it("that kill their worker are lost", async () => {
      const dying = await connect();
      const begun = vi.fn(hang);
      await join(dying.bus, "dying", begun);
      const result = failure(coordinator.submit(rollout, { row: 1 }, { maxTries: 1 }));
      await waitFor(() => expect(begun).toHaveBeenCalled());
      await dying.store.close();
      await join((await connect()).bus, "next", double);
      expect(await result).toMatchObject({
        code: "cluster/lost",
        received: "1 try, the last by worker dying: no sign of life while it ran",
      });
    });

    it("that a worker declines are left to others, and its tries are not counted", async () => {
      await join((await connect()).bus, "picky", async (_, { decline }) => decline("no such code"));
      await join((await connect()).bus, "able", double);
      const results = await Promise.all([1, 2, 3].map((row) => coordinator.submit(rollout, { row }, { maxTries: 1 })));
      expect(results).toMatchObject([1, 2, 3].map((row) => ({ value: { answer: 2 * row }, worker: "able", tries: 1 })));
    });

    it("that a worker gives back are begun anew, and its tries are not counted", async () => {
      let begun = 0;
      await join((await connect()).bus, "a", async ({ row }, { giveBack }) =>
        begun++ < 2 ? giveBack() : { value: { answer: row } },
      );
      const result = await coordinator.submit(rollout, { row: 1 }, { maxTries: 1 });
      expect(result).toMatchObject({ value: { answer: 1 }, tries: 1 });
      expect(begun).toBe(3);
    });

    it("that all workers decline are rejected with their reasons", async () => {
      for (const id of ["one", "two"])
        await join((await connect()).bus, id, async (_, { decline }) => decline(`${id} lacks\u001b[31m it`));
      const error = await failure(coordinator.submit(rollout, { row: 1 }));
      expect(error).toMatchObject({
        code: "cluster/declined",
        received: "one: one lacks [31m it; two: two lacks [31m it",
      });
    });

    it("that are submitted twice are one job, and their result stays", async () => {
      const begun = vi.fn(double);
      const worker = await join((await connect()).bus, "a", begun);
      const twice = [coordinator.submit(rollout, { row: 1 }), coordinator.submit(rollout, { row: 1 })];
      const [first, second] = await Promise.all(twice);
      expect(first).toBe(second);
      await worker.drain();
      const other = (await connect()).bus;
      expect(await other.submit(rollout, { row: 1 })).toEqual(first);
      expect(begun).toHaveBeenCalledTimes(1);
    });

    it("keep their first result; another that comes later is reported", async () => {
      await Promise.all(buses.map((bus) => bus.close()));
      await begin({ ackWaitMs: 60_000 });
      const gate = makeGate();
      const slow = vi.fn<Handler["run"]>(async () => {
        await gate.opened;
        return { value: { answer: -1 } };
      });
      const { bus } = await connect();
      await join(bus, "slow", slow);
      const result = coordinator.submit(rollout, { row: 1 });
      await waitFor(() => expect(slow).toHaveBeenCalled());
      // The queue acts as if it had lost the worker.
      const id = jobId("rollout", { row: 1 });
      const message = { protocol: 1, id, kind: "rollout", payload: { row: 1 }, maxTries: 3, trace: {} };
      const { queue } = stores[0]!;
      await queue.remove("rollout", id);
      await join((await connect()).bus, "quick", double);
      await queue.put("rollout", id, Buffer.from(JSON.stringify(message)));
      expect(await result).toMatchObject({ value: { answer: 2 }, worker: "quick", tries: 2 });
      gate.open();
      await waitFor(() => expect(problems).toMatchObject([{ code: "cluster/conflict" }]));
      expect(problems[0]!.message).toMatch(/of worker quick[\s\S]*another of worker slow/);
      expect(coordinator.stats.conflicts).toBe(1);
      expect(await coordinator.submit(rollout, { row: 1 })).toMatchObject({ worker: "quick" });
    });

    it("wait where too many are outstanding", async () => {
      const { bus } = await connect({ maxOutstanding: 2 });
      const abort = new AbortController();
      const results = [1, 2, 3, 4].map((row) => bus.submit(rollout, { row }));
      const fifth = failure(bus.submit(rollout, { row: 5 }, { signal: abort.signal }));
      await waitFor(() => expect(bus.stats).toMatchObject({ outstanding: 2, waiting: 3 }));
      abort.abort(new Error("not any more"));
      expect((await fifth).message).toBe("not any more");
      await join((await connect()).bus, "a", double);
      expect((await Promise.all(results)).map(({ value }) => value.answer)).toEqual([2, 4, 6, 8]);
      await waitFor(() => expect(bus.stats).toMatchObject({ outstanding: 0, waiting: 0, done: 4, failed: 1 }));
    });

    it("are withdrawn by a signal and by their deadline, from the queue and from their worker", async () => {
      const abort = new AbortController();
      const queued = failure(coordinator.submit(rollout, { row: 1 }, { signal: abort.signal }));
      await waitFor(() => expect(coordinator.stats.outstanding).toBe(1));
      abort.abort(new Error("changed my mind"));
      expect((await queued).message).toBe("changed my mind");

      const rows: number[] = [];
      let told = "";
      await join((await connect()).bus, "a", async ({ row }, context) => {
        rows.push(row);
        if (row === 3) return { value: { answer: 6 } };
        return hang({ row }, context).finally(() => {
          told = "it is over";
        });
      });
      const late = failure(coordinator.submit(rollout, { row: 2 }, { deadlineMs: 1_000 }));
      expect(await late).toMatchObject({ code: "cluster/deadline", received: "begun by worker a, no result" });
      await waitFor(() => expect(told).toBe("it is over"));
      expect(await coordinator.submit(rollout, { row: 3 })).toMatchObject({ value: { answer: 6 } });
      expect(rows).toEqual([2, 3]);
    });

    it("that wait stay in the queue when another is withdrawn", async () => {
      const abort = new AbortController();
      const signals = [1, 2, 3, 4, 5].map((row) => (row === 3 ? abort.signal : undefined));
      const results = signals.map((signal, index) => coordinator.submit(rollout, { row: index + 1 }, { signal }));
      const third = failure(results[2]!);
      const { store } = await connect();
      const isOpen = async () => expect(await store.jobs.get(jobId("rollout", { row: 5 }))).toBeDefined();
      await waitFor(isOpen);
      abort.abort(new Error("changed my mind"));
      expect((await third).message).toBe("changed my mind");
      const isWithdrawn = async () =>
        expect((await store.jobs.get(jobId("rollout", { row: 3 })))?.text).toContain('"withdrawn"');
      await waitFor(isWithdrawn);
      await join((await connect()).bus, "a", double);
      const others = await Promise.all(results.filter((_, index) => index !== 2));
      expect(others.map(({ value }) => value.answer)).toEqual([2, 4, 8, 10]);
    });

    it("are checked on both ends", async () => {
      expect(await failure(coordinator.submit(rollout, { row: 1.5 }))).toMatchObject({
        code: "cluster/invalid-payload",
      });
      const wide = { ...rollout, payload: z.object({ row: z.int(), text: z.string() }) };
      const long = coordinator.submit(wide, { row: 1, text: "x".repeat(600_000) });
      expect(await failure(long)).toMatchObject({ code: "cluster/message-size" });
      await join((await connect()).bus, "wrong", async () => ({ value: { answer: "two" as unknown as number } }));
      const error = await failure(coordinator.submit(rollout, { row: 1 }, { maxTries: 1 }));
      expect(error).toMatchObject({ code: "cluster/given-up" });
      expect(error.received).toContain("an invalid value");
    });

    it("are checked: a result that is invalid, or not its worker's own report, is refused, and replaced by the next", async () => {
      const { store } = await connect();
      const id = jobId("rollout", { row: 1 });
      const stored = (value: unknown, hash: string, meta: unknown = null) => {
        const result = { value, meta, hash, worker: "liar" };
        return JSON.stringify({ protocol: 1, status: "done", tries: [], declined: {}, conflicts: [], result });
      };
      const right = hashText(toCanonicalJson({ answer: 2 }));
      const claim = (value: unknown) => store.jobs.set(claimKey(id, "liar"), claimOf({ value }));
      for (const [text, claimed] of [
        [stored({ answer: "two" }, hashText(toCanonicalJson({ answer: "two" }))), { answer: "two" }],
        [stored({ answer: 3 }, right), { answer: 3 }],
        [stored({ answer: 2 }, right), { answer: 3 }],
        [stored({ answer: 2 }, right, { class: "another" }), { answer: 2 }],
      ] as const) {
        const result = failure(coordinator.submit(rollout, { row: 1 }));
        await waitFor(async () => expect((await store.jobs.get(id))?.text).toContain('"open"'));
        await claim(claimed);
        await store.jobs.set(id, text);
        const error = await result;
        expect(error).toMatchObject({ code: "cluster/invalid-result" });
        expect(error.received).toContain("liar");
      }
      await join((await connect()).bus, "honest", double);
      expect(await coordinator.submit(rollout, { row: 1 })).toMatchObject({ value: { answer: 2 }, worker: "honest" });
    });

    it("of another version of the protocol are left alone, and both versions named", async () => {
      const { store } = await connect();
      const begun = vi.fn(double);
      await join((await connect()).bus, "a", begun);
      const message = { protocol: 2, id: "f".repeat(64), kind: "rollout", payload: { row: 1 } };
      await store.queue.put("rollout", message.id, Buffer.from(JSON.stringify(message)));
      await waitFor(() => expect(problems.length).toBeGreaterThan(0));
      expect(problems[0]).toMatchObject({ code: "cluster/protocol", expected: "protocol 1", received: "protocol 2" });
      expect(begun).not.toHaveBeenCalled();
    });
  });

  describe("workers", () => {
    it("are listed with their work, and vanish when they leave or die", async () => {
      const seen: string[][] = [];
      const watching = new AbortController();
      await coordinator.watchWorkers((list) => seen.push(list.map(({ id }) => id)), watching.signal);
      const first = await join((await connect()).bus, "first", double, 3);
      const dying = await connect();
      await join(dying.bus, "second", hang);
      await waitFor(() => expect(seen.at(-1)).toEqual(["first", "second"]));
      expect((await coordinator.listWorkers())[0]).toMatchObject({
        host: hostname(),
        class: "test",
        slots: { rollout: 3 },
        done: 0,
      });
      await first.drain();
      await waitFor(() => expect(seen.at(-1)).toEqual(["second"]));
      await dying.store.close();
      await waitFor(() => expect(seen.at(-1)).toEqual([]));
      watching.abort();
    });

    it("report their place in texts that are cleaned; older workers without it are listed too", async () => {
      const { store } = await connect();
      const record = { protocol: 1, class: "test", versions: {}, slots: {}, doing: [], draining: false };
      const write = (id: string, more: object) =>
        store.workers.set(id, JSON.stringify({ ...record, id, done: 0, failed: 0, declined: 0, ...more }));
      await write("loud", { host: "box\u001b[31m" });
      await write("old", {});
      await write("vast", { host: "x".repeat(201) });
      await waitFor(async () =>
        expect(await coordinator.listWorkers()).toMatchObject([
          { id: "loud", host: "box [31m" },
          { id: "old", host: "unknown" },
        ]),
      );
      await waitFor(() => expect(problems).toMatchObject([{ code: "cluster/invalid-message" }]));
    });

    it("without work are listed, with their missing part", async () => {
      const { bus } = await connect();
      const lacks = ["the model\u001b[31m", ...Array.from({ length: 30 }, () => "x".repeat(1000))];
      const worker = await bus.work({ id: "idle", class: "", versions: {}, jobs: [], lacks });
      await waitFor(async () => expect(await coordinator.listWorkers()).toMatchObject([{ id: "idle", slots: {} }]));
      const [seen] = await coordinator.listWorkers();
      expect(seen!.lacks).toHaveLength(20);
      expect(seen!.lacks!.slice(0, 2)).toEqual(["the model [31m", "x".repeat(500)]);
      await worker.drain();
    });

    it("that fail job after job rest, say why, and try one before they take all again", async () => {
      const doing = vi.fn<Handler["run"]>(async ({ row }, context) => {
        if (row < 5) throw new Error(`no memory for ${row}`);
        return double({ row }, context);
      });
      const seen: WorkerInfo[] = [];
      const watching = new AbortController();
      await coordinator.watchWorkers((list) => void seen.push(...list), watching.signal);
      await join((await connect()).bus, "weak", doing, 2);
      for (const row of [0, 1, 2, 3, 4])
        expect(await failure(coordinator.submit(rollout, { row }))).toMatchObject({ code: "cluster/given-up" });
      await waitFor(() =>
        expect(seen.at(-1)).toMatchObject({
          slots: { rollout: 0 },
          failed: 5,
          lastFailure: "rollout: no memory for 4",
        }),
      );
      await waitFor(() => expect(seen.at(-1)).toMatchObject({ slots: { rollout: 1 } }));
      expect(await coordinator.submit(rollout, { row: 5 })).toMatchObject({ worker: "weak" });
      await waitFor(() => expect(seen.at(-1)).toMatchObject({ slots: { rollout: 2 }, done: 1 }));
      watching.abort();
    });

    it("say how old their oldest job is", async () => {
      await join((await connect()).bus, "slow", hang);
      const job = failure(coordinator.submit(rollout, { row: 1 }));
      await waitFor(async () => expect((await coordinator.listWorkers())[0]!.oldestS).toBeGreaterThanOrEqual(1));
      await coordinator.close();
      await job;
    });

    it("that drain end their job and take no other", async () => {
      const gate = makeGate();
      const begun = vi.fn<Handler["run"]>(async ({ row }) => {
        await gate.opened;
        return { value: { answer: row } };
      });
      const worker = await join((await connect()).bus, "leaving", begun);
      const first = coordinator.submit(rollout, { row: 1 });
      await waitFor(() => expect(begun).toHaveBeenCalledTimes(1));
      const second = coordinator.submit(rollout, { row: 2 });
      const drained = worker.drain();
      gate.open();
      await drained;
      expect(await first).toMatchObject({ worker: "leaving", tries: 1 });
      await join((await connect()).bus, "next", double);
      expect(await second).toMatchObject({ worker: "next", tries: 1 });
      expect(begun).toHaveBeenCalledTimes(1);
    });

    it("that close give their job back at once, uncounted", async () => {
      const begun = vi.fn(hang);
      const worker = await join((await connect()).bus, "leaving", begun);
      const result = coordinator.submit(rollout, { row: 1 }, { maxTries: 1 });
      await waitFor(() => expect(begun).toHaveBeenCalled());
      await worker.close();
      await join((await connect()).bus, "next", double);
      expect(await result).toMatchObject({ worker: "next", tries: 1 });
    });
  });

  it("that is shut out rejects waiting jobs, loses its lease, and gives the reason", async () => {
    const store = await world.connect();
    stores.push(store);
    const shut = new AbortController();
    const bus = openBus(
      { ...store, closed: AbortSignal.any([store.closed, shut.signal]) },
      { onProblem: (problem) => problems.push(problem), maxOutstanding: 1 },
    );
    buses.push(bus);
    const lease = await bus.acquireLease("me");
    const waiting = [1, 2].map((row) => failure(bus.submit(rollout, { row })));
    await waitFor(() => expect(bus.stats).toMatchObject({ outstanding: 1, waiting: 1 }));
    const reason = new ClusterError("shut this connection out", { code: "cluster/shut-out", subject: "the server" });
    shut.abort(reason);
    expect(bus.closed.reason).toBe(reason);
    for (const error of await Promise.all(waiting)) expect(error).toBe(reason);
    expect(lease.signal.aborted).toBe(true);
    expect(problems).toEqual([reason]);
    expect(await failure(bus.blobs.get("a".repeat(64)))).toBe(reason);
    expect(await failure(bus.submit(rollout, { row: 3 }))).toMatchObject({ code: "cluster/closed" });
  });

  describe("blobs", () => {
    it("of 36 MB come back with their hash", async () => {
      const bytes = new Uint8Array(36_700_001).map((_, index) => (index * 2654435761) >>> 13);
      const sha = await coordinator.blobs.put(bytes);
      const { bus } = await connect();
      expect(await bus.blobs.has(sha)).toBe(true);
      expect(Buffer.compare(await bus.blobs.get(sha), bytes)).toBe(0);
      await coordinator.blobs.delete(sha);
      expect(await failure(bus.blobs.get(sha))).toMatchObject({ code: "cluster/blob-missing" });
    });

    it("that were damaged are refused", async () => {
      const bytes = new Uint8Array(1001).fill(7);
      const sha = await coordinator.blobs.put(bytes);
      await world.damage(sha);
      expect(await failure(coordinator.blobs.get(sha))).toMatchObject({ code: "cluster/blob-damaged" });
      expect(await coordinator.blobs.put(bytes)).toBe(sha);
      expect(Buffer.compare(await coordinator.blobs.get(sha), bytes)).toBe(0);
    });
  });

  describe("the policy", () => {
    it("is replaced only by a writer that saw the newest, and is watched", async () => {
      const { bus } = await connect();
      const seen: PublishedPolicy[] = [];
      const watching = new AbortController();
      await bus.watchPolicy((policy) => seen.push(policy), watching.signal);
      const sha = (digit: string) => digit.repeat(64);
      const run = sha("f");
      const first = await coordinator.publishPolicy({ run, version: 0, weights: sha("a") });
      const second = await coordinator.publishPolicy({ run, version: 1, weights: sha("b") }, first);
      const stale = await failure(bus.publishPolicy({ run, version: 1, weights: sha("c") }, first));
      expect(stale).toMatchObject({ code: "cluster/stale-policy" });
      // Another training with the same version and weights has another policy.
      const elsewhere = await failure(bus.publishPolicy({ ...second, run: sha("e") }, first));
      expect(elsewhere).toMatchObject({ code: "cluster/stale-policy" });
      expect(await failure(bus.publishPolicy({ run, version: 9, weights: sha("a") }))).toMatchObject({
        received: "version 1",
      });
      expect(await bus.readPolicy()).toEqual(second);
      await waitFor(() => expect(seen.at(-1)).toEqual(second));
      watching.abort();
    });
  });

  describe("the newest checkpoint", () => {
    const manifest = (digit: string) => digit.repeat(64);
    // Run names may have any characters.
    const run = "a project/ein Läuf *.>";

    it("of each run is the last one named, and naming it returns the replaced one", async () => {
      const { bus } = await connect();
      const first = { run, term: 1, step: 1, manifest: manifest("a") };
      const second = { run, term: 1, step: 2, manifest: manifest("b") };
      expect(await bus.takeCheckpoint(run, 1)).toBeUndefined();
      expect(await coordinator.nameCheckpoint(first)).toBeUndefined();
      expect(await coordinator.nameCheckpoint(second)).toEqual(first);
      expect(await bus.takeCheckpoint(run, 1)).toEqual(second);
      expect(await bus.takeCheckpoint("another", 1)).toBeUndefined();
      const invalid = coordinator.nameCheckpoint({ ...second, manifest: "../b" });
      expect(await failure(invalid)).toMatchObject({ code: "cluster/invalid-message" });
    });

    it("is not replaced by a former holder of the lease", async () => {
      const { bus } = await connect();
      const old = { run, term: 1, step: 1, manifest: manifest("a") };
      await coordinator.nameCheckpoint(old);
      const taken = { ...old, term: 2 };
      expect(await bus.takeCheckpoint(run, 2)).toEqual(taken);
      const late = await failure(coordinator.nameCheckpoint({ ...old, step: 9 }));
      expect(late).toMatchObject({ code: "cluster/stale-checkpoint", received: "term 2, step 1" });
      expect(await failure(coordinator.takeCheckpoint(run, 1))).toMatchObject({ code: "cluster/stale-checkpoint" });
      // A restarted run has fewer steps.
      expect(await bus.nameCheckpoint({ ...taken, step: 0 })).toEqual(taken);
    });
  });

  describe("the lease", () => {
    it("passes to a standby when its holder dies, and at once when it is released", async () => {
      const dying = await connect();
      const first = await dying.bus.acquireLease("first");
      expect(first.term).toBe(1);
      const standby = (await connect()).bus.acquireLease("second");
      // Held for longer than it lasts without renewal.
      const early = await Promise.race([
        standby,
        new Promise((resolve) => setTimeout(resolve, 2 * quickTimes.leaseMs)),
      ]);
      expect(early).toBeUndefined();
      expect(first.signal.aborted).toBe(false);
      await dying.store.close();
      const second = await standby;
      expect(second).toMatchObject({ holder: "second", term: 2 });
      expect(first.signal.aborted).toBe(true);
      await second.release();
      expect(await coordinator.acquireLease("third")).toMatchObject({ term: 3 });
    });
  });
}
