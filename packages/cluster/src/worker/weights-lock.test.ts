import { describe, expect, it } from "vitest";
import { Superseded, WeightsLock } from "./weights-lock.js";

/** An engine that reports its weights, and work that ends on demand. */
function open(fails: (weights: string) => boolean = () => false) {
  const log: string[] = [];
  const lock = new WeightsLock({
    fetch: async (weights) => {
      if (fails(weights)) throw new Error(`${weights} are gone`);
      return Buffer.from(weights);
    },
    write: async (bytes) => void log.push(`write ${Buffer.from(bytes)}`),
  });
  const begin = (name: string, weights: string, version: number) => {
    const abort = new AbortController();
    let end = () => {};
    const result = lock.use({ weights, version, signal: abort.signal }, async (signal) => {
      log.push(`${name} begins`);
      await new Promise<void>((resolve, reject) => {
        end = resolve;
        signal.addEventListener("abort", () => {
          // Stopping takes a while.
          log.push(`${name} is stopped`);
          setImmediate(() => reject(signal.reason));
        });
      });
      log.push(`${name} ends`);
      return name;
    });
    result.catch(() => undefined);
    return { result, abort, end: () => end() };
  };
  return { log, begin };
}

/** Waits until nothing is left to do: the lock and its sources wait for promises alone, and a stop for one turn of the event loop. */
const settle = async () => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
};

describe("the lock on an engine's weights", () => {
  it("lets jobs of equal weights work together, and loads them once", async () => {
    const { log, begin } = open();
    const jobs = [begin("one", "a", 0), begin("two", "a", 0)];
    await settle();
    const three = begin("three", "a", 0);
    await settle();
    expect(log).toEqual(["write a", "one begins", "two begins", "three begins"]);
    for (const { end } of [...jobs, three]) end();
    await expect(Promise.all(jobs.map(({ result }) => result))).resolves.toEqual(["one", "two"]);
  });

  it("stops work with older weights for newer ones, and waits until it is over", async () => {
    const { log, begin } = open();
    const old = begin("old", "a", 3);
    await settle();
    const fresh = begin("new", "b", 4);
    await settle();
    expect(log).toEqual(["write a", "old begins", "old is stopped", "write b", "new begins"]);
    await expect(old.result).rejects.toBeInstanceOf(Superseded);
    fresh.end();
    await expect(fresh.result).resolves.toBe("new");
  });

  it("lets older weights wait until the newer ones are done with", async () => {
    const { log, begin } = open();
    const fresh = begin("new", "b", 4);
    await settle();
    const old = begin("old", "a", 3);
    await settle();
    const next = begin("next", "b", 4);
    await settle();
    expect(log).toEqual(["write b", "new begins", "next begins"]);
    fresh.end();
    next.end();
    await settle();
    expect(log.slice(3)).toEqual(["new ends", "next ends", "write a", "old begins"]);
    old.end();
    await expect(old.result).resolves.toBe("old");
  });

  it("lets no job overtake one that waits with other weights of the same version", async () => {
    const { log, begin } = open();
    const first = begin("first", "a", 0);
    await settle();
    const other = begin("other", "b", 0);
    const late = begin("late", "a", 0);
    await settle();
    expect(log).toEqual(["write a", "first begins"]);
    first.end();
    await settle();
    expect(log.slice(2)).toEqual(["first ends", "write b", "other begins"]);
    other.end();
    await settle();
    expect(log.slice(5)).toEqual(["other ends", "write a", "late begins"]);
    late.end();
    await late.result;
  });

  it("fails only jobs whose weights are missing", async () => {
    const { begin } = open((weights) => weights === "gone");
    const lost = [begin("lost", "gone", 1), begin("lost too", "gone", 1)];
    const fine = begin("fine", "a", 0);
    for (const { result } of lost) await expect(result).rejects.toThrow("gone");
    await settle();
    fine.end();
    await expect(fine.result).resolves.toBe("fine");
  });

  it("forgets a job that was aborted while it waited", async () => {
    const { log, begin } = open();
    const first = begin("first", "a", 0);
    await settle();
    const gone = begin("gone", "b", 0);
    gone.abort.abort(new Error("withdrawn"));
    await expect(gone.result).rejects.toThrow("withdrawn");
    const late = begin("late", "a", 0);
    await settle();
    expect(log).toEqual(["write a", "first begins", "late begins"]);
    first.end();
    late.end();
    await late.result;
  });
});
