import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DeadlineExceeded, runWithDeadline } from "./run-with-deadline.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Outcome of a promise within `ms` milliseconds of a fake clock: its value, its error, or "running". */
async function after<T>(ms: number, promise: Promise<T>): Promise<T | Error | "running"> {
  let outcome: T | Error | "running" = "running";
  promise.then(
    (value) => {
      outcome = value;
    },
    (error: Error) => {
      outcome = error;
    },
  );
  await vi.advanceTimersByTimeAsync(ms);
  return outcome;
}

describe("a deadline", () => {
  it("ends work that takes too long, by its signal", async () => {
    let seen: AbortSignal | undefined;
    const work = (signal: AbortSignal) => {
      seen = signal;
      return wait(30_000);
    };
    const running = runWithDeadline(0.05, undefined, work);
    expect(await after(49, running)).toBe("running");
    expect(await after(1, running)).toBeInstanceOf(DeadlineExceeded);
    expect(seen!.aborted).toBe(true);
  });

  it("counts for work that held the event loop, for any result", async () => {
    const work = () => {
      // The clock goes on, and no timer is heard.
      vi.setSystemTime(Date.now() + 30);
      vi.spyOn(performance, "now").mockReturnValue(performance.now() + 30);
      return "too late";
    };
    expect(await after(0, runWithDeadline(0.01, undefined, work))).toBeInstanceOf(DeadlineExceeded);
    vi.restoreAllMocks();
  });

  it("does not count the time for which work pauses it", async () => {
    const running = runWithDeadline(0.2, undefined, async (_, pauseDeadline) => {
      const start = pauseDeadline();
      await wait(400);
      start();
      return "done";
    });
    expect(await after(400, running)).toBe("done");
  });

  it("counts on where it stopped, once every pause is over", async () => {
    const running = runWithDeadline(1, undefined, async (_, pauseDeadline) => {
      await wait(200);
      const [first, second] = [pauseDeadline(), pauseDeadline()];
      first();
      // Called twice it is still one pause.
      first();
      await wait(1200);
      second();
      await wait(30_000);
    });
    // 200 ms, a pause, and the 800 that were left.
    expect(await after(2199, running)).toBe("running");
    expect(await after(1, running)).toEqual(new DeadlineExceeded("no answer within 1 s"));
  });

  it("still hears its parent's abort while it is paused", async () => {
    const parent = new AbortController();
    const running = runWithDeadline(0.01, parent.signal, (_, pauseDeadline) => {
      pauseDeadline();
      return wait(5000);
    });
    expect(await after(1000, running)).toBe("running");
    parent.abort(new Error("enough"));
    expect(await after(0, running)).toEqual(new Error("enough"));
  });
});
