import { describe, expect, it } from "vitest";
import { type Contender, listSettings, measureBest, nameSetting } from "./settings.js";

interface Recorded extends Contender<string> {
  runs: { cases: readonly string[]; isTrial: boolean }[];
  disposals: number;
}

/** Figures of each case: of the trial, then of the rounds in turn. */
function makeContender(side: string, setting: string, figures: Record<string, number[]>): Recorded {
  const counts: Record<string, number> = {};
  const contender: Recorded = {
    side,
    setting,
    runs: [],
    disposals: 0,
    run: async (cases, isTrial) => {
      contender.runs.push({ cases, isTrial });
      return new Map(
        cases.map((one) => {
          const index = counts[one] ?? 0;
          counts[one] = index + 1;
          return [one, figures[one]![Math.min(index, figures[one]!.length - 1)]!];
        }),
      );
    },
    dispose: async () => {
      contender.disposals++;
    },
  };
  return contender;
}

describe("each side runs in its better setting", () => {
  it("measures settings close to the best of its own side, case by case, and takes the best median", async () => {
    const on = makeContender("ours", "on", { one: [100], many: [50] });
    // Behind in the trial of `many`, but close; ahead when measured.
    const off = makeContender("ours", "off", { one: [60], many: [45, 70, 70, 10] });
    const peerOn = makeContender("peer", "on", { one: [10], many: [90] });
    const peerOff = makeContender("peer", "off", { one: [30], many: [20] });
    const contenders = [on, off, peerOn, peerOff];
    const bests = await measureBest(contenders, ["one", "many"], { rounds: 3, log: () => {} });

    expect(bests.get("ours")!.get("one")).toEqual({ used: "on", median: 100, tried: { on: 100, off: 60 } });
    expect(bests.get("ours")!.get("many")).toEqual({ used: "off", median: 70, tried: { on: 50, off: 45 } });
    // A slower side is not held to the faster one's figures.
    expect(bests.get("peer")!.get("one")).toEqual({ used: "off", median: 30, tried: { on: 10, off: 30 } });
    expect(bests.get("peer")!.get("many")!.used).toBe("on");

    const measured = (contender: Recorded) => contender.runs.filter(({ isTrial }) => !isTrial);
    expect(measured(off)).toHaveLength(3);
    expect(measured(off)[0]!.cases).toEqual(["many"]);
    expect(measured(peerOff)[0]!.cases).toEqual(["one"]);
    for (const contender of contenders) expect(contender.disposals).toBe(1);
  });

  it("tries settings again that may be the best, and counts the better trial", async () => {
    const cold = makeContender("ours", "on", { one: [60, 100] });
    const warm = makeContender("ours", "off", { one: [80] });
    const hopeless = makeContender("ours", "1 thread", { one: [30] });
    const bests = await measureBest([cold, warm, hopeless], ["one"], { rounds: 1, trials: 2, log: () => {} });
    expect(bests.get("ours")!.get("one")).toEqual({
      used: "on",
      median: 100,
      tried: { on: 100, off: 80, "1 thread": 30 },
    });
    expect(hopeless.runs).toHaveLength(1);
  });

  it("tries flash attention, the cores behind shared threads, and one thread for small models", () => {
    expect(listSettings(false, 2, 2).map(nameSetting)).toEqual([
      "flash attention on, 2 threads",
      "flash attention off, 2 threads",
    ]);
    expect(listSettings(false, 8, 4).map(({ threads }) => threads)).toEqual([8, 4, 8, 4]);
    expect(listSettings(true, 8, 4).map(({ threads }) => threads)).toEqual([8, 4, 1, 8, 4, 1]);
    expect(nameSetting({ flashAttention: false, threads: 1 })).toBe("flash attention off, 1 thread");
  });
});
