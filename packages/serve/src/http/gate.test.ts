import { describe, expect, it } from "vitest";
import { Gate } from "./gate.js";

const never = new AbortController().signal;

/** Work that ends on demand. */
function makeWork() {
  let end!: () => void;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  let started = false;
  const run = async () => {
    started = true;
    await ended;
  };
  return { run, end, isStarted: () => started };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("Gate", () => {
  it("runs a limited number at once, in the order of their arrival", async () => {
    const gate = new Gate({ running: 2, waiting: 2 });
    const works = [makeWork(), makeWork(), makeWork(), makeWork()];
    const done = works.map((work) => gate.run(work.run, never));
    await settle();
    expect(works.map((work) => work.isStarted())).toEqual([true, true, false, false]);
    expect([gate.running, gate.waiting]).toEqual([2, 2]);
    works[1]!.end();
    await done[1];
    await settle();
    expect(works.map((work) => work.isStarted())).toEqual([true, true, true, false]);
    for (const work of works) work.end();
    await Promise.all(done);
    expect([gate.running, gate.waiting]).toEqual([0, 0]);
  });

  it("refuses calls beyond its room with 429, and a time to retry", async () => {
    const gate = new Gate({ running: 1, waiting: 1 });
    const [first, second] = [makeWork(), makeWork()];
    const done = [gate.run(first.run, never), gate.run(second.run, never)];
    await expect(gate.run(async () => undefined, never)).rejects.toMatchObject({ status: 429, retryAfter: 1 });
    expect(() => gate.check(1)).toThrow(expect.objectContaining({ code: "serve/busy", subject: "server" }));
    first.end();
    second.end();
    await Promise.all(done);
    expect(() => gate.check(2)).not.toThrow();
    expect(() => gate.check(3)).toThrow(expect.objectContaining({ code: "serve/busy", subject: "server" }));
  });

  it("a call that leaves the queue takes no place, and a failed one gives its place back", async () => {
    const gate = new Gate({ running: 1, waiting: 5 });
    const first = makeWork();
    const done = gate.run(first.run, never);
    const controller = new AbortController();
    const left = gate.run(async () => "never", controller.signal);
    const third = gate.run(async () => {
      throw new Error("failed");
    }, never);
    const last = gate.run(async () => "last", never);
    const reason = new Error("gone");
    controller.abort(reason);
    await expect(left).rejects.toBe(reason);
    expect(gate.waiting).toBe(2);
    first.end();
    await done;
    await expect(third).rejects.toThrow("failed");
    expect(await last).toBe("last");
    await expect(gate.run(async () => 1, controller.signal)).rejects.toBe(reason);
    expect([gate.running, gate.waiting]).toEqual([0, 0]);
  });

  it("pauses once nothing runs, and admits nothing until it is resumed", async () => {
    const gate = new Gate({ running: 2, waiting: 5 });
    const first = makeWork();
    const done = gate.run(first.run, never);
    let paused = false;
    const pause = gate.pause().then(() => {
      paused = true;
    });
    const second = makeWork();
    const later = gate.run(second.run, never);
    await settle();
    expect([paused, second.isStarted()]).toEqual([false, false]);
    first.end();
    await done;
    await pause;
    expect(second.isStarted()).toBe(false);
    gate.resume();
    await settle();
    expect(second.isStarted()).toBe(true);
    second.end();
    await later;
  });
});
