import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

/** thread_choice.cc: the number of threads of each evaluation, where evaluations take given times. */
const build = join(import.meta.dirname, "..", "build");

interface Phase {
  evaluations: number;
  /** Seconds of an evaluation with one thread, two, and so on. */
  seconds: readonly number[];
}

function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command}: ${stdout}${stderr}`);
  return stdout;
}

function choose(threads: number, phases: readonly Phase[], most = threads): number[][] {
  const args = phases.map(({ evaluations, seconds }) => `${evaluations}:${seconds.join()}`);
  const output = run(join(build, "thread_choice"), [`${threads}`, `${most}`, ...args]);
  return output
    .trim()
    .split("\n")
    .map((line) => line.split(" ").map(Number));
}

/** Time of all evaluations, as a multiple of what the best number would have taken. */
const slowdown = (chosen: readonly number[], { seconds }: Phase) =>
  chosen.reduce((sum, threads) => sum + seconds[threads - 1]!, 0) / (chosen.length * Math.min(...seconds));

const alone: Phase = { evaluations: 2000, seconds: [1.9, 1] };
const beside: Phase = { evaluations: 2000, seconds: [2, 5] };

beforeAll(() => {
  run("cmake", ["--build", build, "--target", "thread_choice"]);
});

describe("the number of threads", () => {
  it("begins with all, and stays where they are the fastest: trials cost a hundredth", () => {
    const [chosen] = choose(2, [alone]);
    expect(chosen!.slice(0, 50)).toEqual(Array(50).fill(2));
    expect(slowdown(chosen!, alone)).toBeLessThan(1.012);
    // It tries again: the machine may change.
    expect(chosen!.slice(-400)).toContain(1);
  });

  it("falls where other programs take cores, and rises again", () => {
    const [, busy, after] = choose(2, [alone, beside, alone]);
    expect(slowdown(busy!.slice(200), beside)).toBeLessThan(1.02);
    expect(slowdown(after!.slice(200), alone)).toBeLessThan(1.02);
  });

  it("is the smaller one where more gain nothing", () => {
    const [chosen] = choose(2, [{ evaluations: 1000, seconds: [1.05, 1] }]);
    expect(new Set(chosen!.slice(200, 208))).toContain(1);
    expect(chosen!.slice(200).filter((threads) => threads === 1).length).toBeGreaterThan(600);
  });

  it("is found among many", () => {
    const many = (best: number): Phase => ({
      evaluations: 3000,
      seconds: Array.from({ length: 16 }, (_, i) => (i + 1 <= best ? 16 / (i + 1) : 40)),
    });
    // Beside a program on one of 16 cores, 15 are the fastest; beside eight of them, eight.
    for (const best of [16, 15, 8, 1]) {
      const [chosen] = choose(16, [many(best)]);
      // 16 are no tenth faster than 15: those leave a core to others.
      expect(slowdown(chosen!.slice(1000), many(best)), `${best}`).toBeLessThan(best === 16 ? 1.08 : 1.03);
    }
  });

  it("is at most what is asked for, and at least one", () => {
    expect(new Set(choose(2, [alone], 1)[0])).toEqual(new Set([1]));
    expect(new Set(choose(1, [{ evaluations: 100, seconds: [1] }])[0])).toEqual(new Set([1]));
    expect(Math.max(...choose(4, [{ evaluations: 500, seconds: [4, 2, 1.5, 1] }], 3)[0]!)).toBe(3);
  });

  it("is not moved by one evaluation that takes long", () => {
    const [, , after] = choose(2, [
      { evaluations: 500, seconds: [1.9, 1] },
      { evaluations: 1, seconds: [1000, 1000] },
      { evaluations: 100, seconds: [1.9, 1] },
    ]);
    expect(after!.filter((threads) => threads === 1).length).toBeLessThan(12);
  });
});
