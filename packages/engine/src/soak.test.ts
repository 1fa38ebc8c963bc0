import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { measureMemoryTrend, runSoak } from "./testing/index.js";

const policy = fileURLToPath(new URL("../../../models/cria-tiny.gguf", import.meta.url));

// The short form of scripts/nightly/soak.mjs, which judges RSS over minutes.
describe("mixed load", () => {
  it("no wrong logprob, nothing left over, no unhandled rejection", async () => {
    const { failures, counts, checks, scheduler } = await runSoak({
      path: policy,
      seconds: 4,
      epochSeconds: 1.5,
      replays: 15,
      maxGrowth: Number.POSITIVE_INFINITY,
    });
    expect(failures).toEqual([]);
    expect(checks.scoredTokens).toBeGreaterThan(0);
    expect(checks.replayedRequests).toBeGreaterThan(0);
    expect(counts.forks).toBeGreaterThan(0);
    expect(scheduler.evictions).toBeGreaterThan(0);
  });
});

describe("measureMemoryTrend", () => {
  const measure = (rss: (minute: number) => number) =>
    measureMemoryTrend(
      Array.from({ length: 31 }, (_, minute) => ({ seconds: 60 * minute, rss: rss(minute), heap: 0, external: 0 })),
    )!;

  it("sees growth through jumps, and none in a warm-up", () => {
    const jumps = (minute: number) => (minute % 3) * 1000;
    // Medians of minutes 8 to 14 and 24 to 30, computed by hand: 2300 (minute 13) and 3500 (minute 25) above 1e6.
    expect(measure((minute) => 1e6 + 100 * minute + jumps(minute)).growth).toBe(1200);
    expect(measure((minute) => 1e6 + 100 * minute).slope).toBeCloseTo(6000);
    const warm = measure((minute) => 1e6 + Math.min(minute, 7) * 1e5 + jumps(minute));
    expect(warm.warmUpSeconds).toBe(450);
    expect(warm.growth).toBe(0);
    expect(warm.slope).toBe(0);
  });

  it("reports nothing for a few samples", () => {
    expect(measureMemoryTrend([])).toBeNull();
    expect(measureMemoryTrend([{ seconds: 1, rss: 1, heap: 0, external: 0 }])).toBeNull();
  });
});
