import { describe, expect, it } from "vitest";
import { listUnderWay, listVersions, versionOf } from "./schedule.js";

describe("the schedule of a training", () => {
  it("without lag: each step is sampled by the policy that learns from it, and nothing is under way beside it", () => {
    for (let step = 1; step <= 5; step++) {
      expect(versionOf(step, { lag: 0 })).toBe(step - 1);
      expect(listUnderWay(step, { lag: 0, total: 5 })).toEqual([step]);
      expect(listVersions(step, { lag: 0, total: 5 })).toEqual([]);
    }
  });

  it("with a lag of 2: each step is sampled two updates before, the first ones by the policy of the start", () => {
    const schedule = { lag: 2, total: 6 };
    expect([1, 2, 3, 4, 5, 6].map((step) => versionOf(step, schedule))).toEqual([0, 0, 0, 1, 2, 3]);
    expect(listUnderWay(1, schedule)).toEqual([1, 2, 3]);
    expect(listUnderWay(5, schedule)).toEqual([5, 6]);
    expect(listUnderWay(6, schedule)).toEqual([6]);
    expect([1, 2, 3, 4, 5, 6].map((done) => listVersions(done, schedule))).toEqual([
      [0],
      [0, 1],
      [1, 2],
      [2, 3],
      [3],
      [],
    ]);
  });

  it("begins each step once, when the version that samples it is there, in their order", () => {
    for (const lag of [0, 1, 2, 3, 7])
      for (const total of [1, 2, 5, 12]) {
        const schedule = { lag, total };
        const begun: number[] = [];
        for (let step = 1; step <= total; step++)
          for (const other of listUnderWay(step, schedule)) {
            if (begun.includes(other)) continue;
            begun.push(other);
            // While `step` is learned from, step - 1 updates have been made.
            expect(versionOf(other, schedule)).toBe(other <= lag + 1 ? 0 : step - 1);
          }
        expect(begun).toEqual(Array.from({ length: total }, (_, i) => i + 1));
      }
  });

  it("names all versions that a checkpoint must hold for the steps under way", () => {
    for (const lag of [0, 1, 3])
      for (let done = 1; done <= 9; done++) {
        const schedule = { lag, total: 9 };
        const needed = listUnderWay(done + 1, schedule).map((step) => versionOf(step, schedule));
        expect(listVersions(done, schedule)).toEqual([...new Set(needed.filter((version) => version < done))]);
      }
  });
});
