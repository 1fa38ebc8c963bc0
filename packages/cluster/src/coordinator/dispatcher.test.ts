import { describe, expect, it } from "vitest";
import type { WorkerInfo } from "../bus/job-bus.js";
import { Dispatcher, DoItHere, Overtaken } from "./dispatcher.js";

const worker = (id: string, slots: WorkerInfo["slots"], more: Partial<WorkerInfo> = {}) =>
  ({ id, slots, class: "a", draining: false, ...more }) as WorkerInfo;

const PATIENCE = 1000;

function open({ takesPart = true, conversationsHere = 4 } = {}) {
  const clock = { now: 0 };
  const dispatcher = new Dispatcher({
    takesPart,
    conversationsHere,
    mayDo: (each) => each.class === "a",
    patienceMs: PATIENCE,
    now: () => clock.now,
  });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const run = (name: string, away?: (signal: AbortSignal) => Promise<string>, order?: number) => {
    const hold = (place: string) => {
      begun.push(`${name} ${place}`);
      return new Promise<string>((resolve) => ends.push(() => resolve(`${name} ${place}`)));
    };
    return dispatcher.run({
      kind: "rollout",
      order,
      here: () => hold("here"),
      copy: () => hold("copy"),
      away: away ?? (() => hold("away")),
    });
  };
  return { dispatcher, begun, ends, run, clock };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("Dispatcher", () => {
  it("does all jobs here without workers, as many at once as fit", async () => {
    const { begun, ends, run, dispatcher } = open({ takesPart: false, conversationsHere: 2 });
    const all = ["a", "b", "c"].map((name) => run(name));
    await settle();
    expect(begun).toEqual(["a here", "b here"]);
    expect(dispatcher.waiting).toBe(1);
    ends[0]!();
    await settle();
    expect(begun).toEqual(["a here", "b here", "c here"]);
    for (const end of ends) end();
    expect(await Promise.all(all)).toEqual(["a here", "b here", "c here"]);
  });

  it("begins jobs in order, and equal ones in the order of their arrival", async () => {
    const { begun, ends, run } = open({ conversationsHere: 1 });
    for (const [name, order] of [
      ["a", 2],
      ["b", 2],
      ["c", 1],
      ["d", 3],
      ["e", 2],
      ["f", 1],
    ] as const)
      void run(name, undefined, order);
    for (let i = 0; i < 5; i++) {
      ends[i]!();
      await settle();
    }
    expect(begun.map((text) => text[0]).join("")).toBe("acfbed");
  });

  it("gives a job to the worker with the smallest share of used slots", async () => {
    const { begun, run, dispatcher } = open();
    dispatcher.setWorkers([worker("w", { rollout: 2 }), worker("v", { rollout: 2 })]);
    for (const name of "abcdefgh") void run(name);
    await settle();
    // Here as many as one worker has, 2; away 4.
    expect(begun).toEqual(["a here", "b away", "c away", "d here", "e away", "f away"]);
  });

  it("does no job here if it takes no part, and counts only allowed workers that do not drain", async () => {
    const { begun, run, dispatcher } = open({ takesPart: false });
    dispatcher.setWorkers([
      worker("w", { rollout: 1 }),
      worker("x", { rollout: 9 }, { class: "b" }),
      worker("y", { rollout: 9 }, { draining: true }),
      worker("z", { score: 9 }),
    ]);
    for (const name of "abc") void run(name);
    await settle();
    expect(begun).toEqual(["a away"]);
  });

  it("takes back jobs of workers that left, and jobs that no worker does", async () => {
    const { begun, ends, run, dispatcher } = open({ takesPart: false });
    dispatcher.setWorkers([worker("w", { rollout: 2 })]);
    const lost = run(
      "lost",
      (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    );
    const refused = run("refused", () => Promise.reject(new DoItHere("declined")));
    await settle();
    expect(begun).toEqual(["refused here"]);
    dispatcher.setWorkers([]);
    await settle();
    expect(begun).toEqual(["refused here", "lost here"]);
    for (const end of ends) end();
    expect(await Promise.all([lost, refused])).toEqual(["lost here", "refused here"]);
  });

  it("gives a slow job to another worker, and then does it here; the first result counts", async () => {
    const { begun, ends, run, dispatcher, clock } = open({ takesPart: false });
    dispatcher.setWorkers([worker("stuck", { rollout: 2 }), worker("good", { rollout: 2 })]);
    const all = ["a", "b", "c", "d", "e"].map((name) => run(name));
    // All slots are in use, and one job waits.
    clock.now = 10 * PATIENCE;
    for (const end of ends.splice(1, 3)) end();
    await settle();
    expect(begun.splice(0)).toEqual(["a away", "b away", "c away", "d away", "e away"]);
    // The others took 10,000: three times as much counts as long. By now `e` is done.
    ends[1]!();
    clock.now = 30 * PATIENCE - 1;
    dispatcher.look();
    expect(begun).toEqual([]);
    clock.now++;
    dispatcher.look();
    expect(begun).toEqual(["a away"]);
    await settle();
    // The copy may take as long.
    clock.now += 30 * PATIENCE - 1;
    dispatcher.look();
    expect(begun).toEqual(["a away"]);
    clock.now++;
    dispatcher.look();
    expect(begun).toEqual(["a away", "a copy"]);
    clock.now += 100 * PATIENCE;
    dispatcher.look();
    expect(begun).toEqual(["a away", "a copy"]);
    ends.at(-1)!();
    expect(await Promise.all(all)).toEqual(["a copy", "b away", "c away", "d away", "e away"]);
  });

  it("reports an overtaken worker, and ends its own copy before it gives another's result", async () => {
    const { begun, ends, run, dispatcher, clock } = open({ takesPart: false });
    dispatcher.setWorkers([worker("stuck", { rollout: 1 })]);
    let reason: unknown;
    const gates: (() => void)[] = [];
    const slow = run("slow", (signal) => {
      signal.addEventListener("abort", () => {
        reason = signal.reason;
      });
      return new Promise<string>((resolve) => gates.push(() => resolve("slow away")));
    });
    // No durations are known yet.
    clock.now = 3 * PATIENCE - 1;
    dispatcher.look();
    expect(begun).toEqual([]);
    clock.now++;
    dispatcher.look();
    expect(begun).toEqual(["slow copy"]);
    let isOver = false;
    void slow.then(() => {
      isOver = true;
    });
    gates[0]!();
    await settle();
    expect(isOver).toBe(false);
    ends[0]!();
    expect(await slow).toBe("slow away");

    const stuck = run("stuck", (signal) => {
      signal.addEventListener("abort", () => {
        reason = signal.reason;
      });
      return new Promise<string>(() => {});
    });
    clock.now += 20 * PATIENCE;
    dispatcher.look();
    ends.at(-1)!();
    expect(await stuck).toBe("stuck copy");
    expect(reason).toBeInstanceOf(Overtaken);
  });

  it("looks at workers when they change, and at a piece of work a fixed number of times", async () => {
    /** Number of `mayDo` calls for this many jobs. */
    const count = async (jobs: number) => {
      let asked = 0;
      let clocks = 0;
      const dispatcher = new Dispatcher({
        takesPart: true,
        conversationsHere: 8,
        mayDo: () => ++asked > 0,
        patienceMs: PATIENCE,
        now: () => ++clocks / 1e6,
      });
      const slots = { rollout: 4 };
      const workers = Array.from({ length: 64 }, (_, i) => {
        const told = worker(`w${i}`, slots);
        const get = (target: WorkerInfo, key: string | symbol) => {
          asked++;
          return Reflect.get(target, key);
        };
        return new Proxy(told, { get });
      });
      dispatcher.setWorkers(workers);
      const once = asked;
      const done = Array.from({ length: jobs }, (_, i) => {
        const work = async () => i;
        return dispatcher.run({ kind: "rollout", here: work, copy: work, away: work });
      });
      expect(await Promise.all(done)).toHaveLength(jobs);
      expect(asked).toBe(once);
      return clocks / jobs;
    };
    const few = await count(256);
    expect(await count(4096)).toBeLessThan(1.1 * few);
  });

  it("passes failures on", async () => {
    const { run, dispatcher } = open({ takesPart: false });
    dispatcher.setWorkers([worker("w", { rollout: 2 })]);
    await expect(run("bad", () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  });
});
