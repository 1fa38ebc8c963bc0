import { describe, expect, it } from "vitest";
import { DeadlineExceeded, runWithDeadline } from "./run-with-deadline.js";

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

describe("a deadline", () => {
  it("ends work that takes too long, and tells it by its signal", async () => {
    let seen: AbortSignal | undefined;
    const work = (signal: AbortSignal) => {
      seen = signal;
      return wait(30_000);
    };
    await expect(runWithDeadline(0.05, undefined, work)).rejects.toThrow(DeadlineExceeded);
    expect(seen!.aborted).toBe(true);
  });

  it("counts for work that held the event loop, whatever it gave in the end", async () => {
    const work = () => {
      const started = performance.now();
      while (performance.now() - started < 30);
      return "too late";
    };
    await expect(runWithDeadline(0.01, undefined, work)).rejects.toThrow(DeadlineExceeded);
  });

  it("does not count the time for which work pauses it", async () => {
    const result = await runWithDeadline(0.2, undefined, async (_, pauseDeadline) => {
      const start = pauseDeadline();
      await wait(400);
      start();
      return "done";
    });
    expect(result).toBe("done");
  });

  it("counts on where it stopped, once every pause is over", async () => {
    const started = performance.now();
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
    await expect(running).rejects.toThrow("no answer within 1 s");
    const passed = performance.now() - started;
    expect(passed).toBeGreaterThan(2000);
    expect(passed).toBeLessThan(15_000);
  });

  it("still hears its parent's abort while it is paused", async () => {
    const running = runWithDeadline(0.01, AbortSignal.timeout(50), (_, pauseDeadline) => {
      pauseDeadline();
      return wait(5000);
    });
    await expect(running).rejects.toThrow(/timeout/);
  });
});
