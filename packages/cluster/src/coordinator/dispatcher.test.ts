import { describe, expect, it } from "vitest";
import type { WorkerInfo } from "../bus/job-bus.js";
import { Dispatcher, DoItHere } from "./dispatcher.js";

const worker = (id: string, slots: WorkerInfo["slots"], more: Partial<WorkerInfo> = {}) =>
  ({ id, slots, class: "a", draining: false, ...more }) as WorkerInfo;

function open({ takesPart = true, conversationsHere = 4 } = {}) {
  const dispatcher = new Dispatcher({ takesPart, conversationsHere, mayDo: (each) => each.class === "a" });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const run = (name: string, away?: (signal: AbortSignal) => Promise<string>) => {
    const hold = (place: string) => {
      begun.push(`${name} ${place}`);
      return new Promise<string>((resolve) => ends.push(() => resolve(`${name} ${place}`)));
    };
    return dispatcher.run({ kind: "rollout", here: () => hold("here"), away: away ?? (() => hold("away")) });
  };
  return { dispatcher, begun, ends, run };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("Dispatcher", () => {
  it("does all here without workers, as much at once as fits", async () => {
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

  it("gives to whoever has the smaller share of its slots in use", async () => {
    const { begun, run, dispatcher } = open();
    dispatcher.setWorkers([worker("w", { rollout: 2 }), worker("v", { rollout: 2 })]);
    for (const name of "abcdefgh") void run(name);
    await settle();
    // Here as many as a worker has, 2; away 4.
    expect(begun).toEqual(["a here", "b away", "c away", "d here", "e away", "f away"]);
  });

  it("does nothing here where it takes no part, and counts only workers that may and do not drain", async () => {
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

  it("takes back what it gave to those who left, and what nobody does", async () => {
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

  it("passes on what failed", async () => {
    const { run, dispatcher } = open({ takesPart: false });
    dispatcher.setWorkers([worker("w", { rollout: 2 })]);
    await expect(run("bad", () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  });
});
