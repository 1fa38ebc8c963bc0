import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

/** drafts.cc: what is proposed behind texts that were learned, and how many tokens a step drafts where rows take given times. */
const build = join(import.meta.dirname, "..", "build");

function run(command: string, args: readonly string[], input?: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", input });
  if (status !== 0) throw new Error(`${command}: ${stdout}${stderr}`);
  return stdout;
}

const drive = (...lines: string[]) =>
  run(join(build, "drafts"), [], `${lines.join("\n")}\n`)
    .trimEnd()
    .split("\n");

interface Proposed {
  token: number;
  chance: number;
}

const readProposals = (line: string): Proposed[] =>
  line
    .split(" ")
    .filter((one) => one !== "")
    .map((one) => one.split(":").map(Number))
    .map(([token, chance]) => ({ token: token!, chance: chance! }));

function propose(lines: readonly string[], behind: readonly number[], most = 7): Proposed[] {
  return readProposals(drive(...lines, `propose ${most} ${behind.join(" ")}`).at(-1)!);
}

const count = (from: number, length: number) => Array.from({ length }, (_, i) => from + i);
const learn = (tokens: readonly number[], times = 1) => Array<string>(times).fill(`learn ${tokens.join(" ")}`);
const tokensOf = (proposed: readonly Proposed[]) => proposed.map(({ token }) => token);

beforeAll(() => {
  run("cmake", ["--build", build, "--target", "drafts"]);
});

describe("what may follow", () => {
  const text = count(10, 60);

  it("is what followed the same tokens, as far as it goes", () => {
    expect(tokensOf(propose(learn(text), [20, 21, 22]))[0]).toBe(23);
    expect(tokensOf(propose(learn(text, 8), [20, 21, 22]))).toEqual(count(23, 7));
    expect(tokensOf(propose(learn(text, 8), [20, 21, 22], 2))).toEqual([23, 24]);
    expect(tokensOf(propose(learn(text, 8), [66, 67, 68]))).toEqual([69]);
    expect(propose(learn(text, 8), [20, 22, 21])).toEqual([]);
    expect(propose(learn(text, 8), [21, 22])).toEqual([]);
    expect(propose([], [20, 21, 22])).toEqual([]);
  });

  it("follows the longest context: 3 tokens, 6 or 32", () => {
    const [one, other] = [1, 2].map((first) => [first, first, first, ...count(10, 6), 100 + first]);
    const texts = [...learn(one!, 8), ...learn(other!, 9)];
    expect(tokensOf(propose(texts, [1, 1, 1, ...count(10, 3)]))).toEqual([13, 14, 15, 102]);
    const long = [1, 2].map((first) => [first, ...count(10, 31), 100 + first]);
    for (const first of [1, 2])
      expect(
        tokensOf(
          propose(
            long.flatMap((each) => learn(each, 4)),
            [first, ...count(10, 31)],
            1,
          ),
        ),
      ).toEqual([100 + first]);
  });

  it("changes when other tokens follow more often", () => {
    const [old, later] = [
      [1, 2, 3, 4],
      [1, 2, 3, 5],
    ];
    expect(tokensOf(propose([...learn(old, 8), ...learn(later, 7)], [1, 2, 3], 1))).toEqual([4]);
    expect(tokensOf(propose([...learn(old, 8), ...learn(later, 9)], [1, 2, 3], 1))).toEqual([5]);
    // However often it came: counts are halved.
    expect(tokensOf(propose([...learn(old, 1000), ...learn(later, 40)], [1, 2, 3], 1))).toEqual([5]);
  });

  it("is no stop token and no image's vector", () => {
    expect(tokensOf(propose(learn([1, 2, 3, 999, 4], 8), [1, 2, 3]))).toEqual([]);
    expect(tokensOf(propose(learn([1, 2, 3, 4, 999], 8), [1, 2, 3]))).toEqual([4]);
    expect(tokensOf(propose(learn([1, 2, 3, 1000, 5], 8), [1, 2, 3]))).toEqual([]);
  });

  it("is as likely as such guesses were right", () => {
    const chanceAfter = (judged: string[]) => propose([...learn(text, 8), ...judged], [20, 21, 22], 1)[0]!.chance;
    const before = chanceAfter([]);
    expect(before).toBeGreaterThan(0.8);
    expect(chanceAfter(Array(50).fill("judge 1 30 31 32"))).toBeGreaterThan(before);
    expect(chanceAfter(Array(50).fill("judge 0 30 31 32"))).toBeLessThan(0.05);
    const half = Array.from({ length: 400 }, (_, i) => `judge ${i % 2} 30 31 32`);
    expect(Math.abs(chanceAfter(half) - 0.5)).toBeLessThan(0.03);
    // It follows a change.
    expect(chanceAfter([...half, ...Array(600).fill("judge 1 30 31 32")])).toBeGreaterThan(0.85);
    // Nothing is proposed that is worth no row.
    expect(propose([...learn(text, 8), ...Array(400).fill("judge 0 30 31 32")], [20, 21, 22])).toEqual([]);
  });
});

describe("the number of drafted tokens", () => {
  const rows = (seconds: (rows: number) => number) => Array.from({ length: 128 }, (_, i) => seconds(i + 1)).join();
  const flat = rows(() => 1);
  const linear = rows((count) => count);
  const choose = (...phases: [steps: number, slots: number, chance: number, seconds: string][]) =>
    drive(...phases.map((phase) => `steps ${phase.join(" ")}`)).map((line) => line.trim().split(" ").map(Number));

  /** Tokens per second beside those without drafts, by the drafts' true chances. */
  function gain(lengths: readonly number[], slots: number, chance: number, seconds: string): number {
    const times = seconds.split(",").map(Number);
    const tokens = (length: number) =>
      slots * Array.from({ length: length + 1 }, (_, i) => chance ** i).reduce((a, b) => a + b);
    const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
    const speed = sum(lengths.map(tokens)) / sum(lengths.map((length) => times[slots * (length + 1) - 1]!));
    return speed / (slots / times[slots - 1]!);
  }

  it("is none before anything was measured, or without a chance", () => {
    expect(choose([1, 4, 1, flat])[0]).toEqual([0]);
    expect(new Set(choose([200, 4, 0, flat])[0])).toEqual(new Set([0]));
    expect(new Set(choose([200, 4, 0.01, flat])[0])).toEqual(new Set([0]));
  });

  it("is the most where rows cost nothing, and none where a row costs a token: trials lose two hundredths", () => {
    const [free] = choose([300, 4, 0.9, flat]);
    expect(gain(free!.slice(20), 4, 0.9, flat)).toBeGreaterThan(0.97 * gain([7], 4, 0.9, flat));
    for (const slots of [1, 4, 16]) {
      const [dear] = choose([3000, slots, 0.9, linear]);
      expect(gain(dear!.slice(300), slots, 0.9, linear)).toBeGreaterThan(0.98);
    }
  });

  it("is none with more than four slots, whatever rows cost", () => {
    const [four, five] = [4, 5].map((slots) => choose([300, slots, 0.9, flat])[0]!);
    expect(Math.max(...four!)).toBe(7);
    expect(new Set(five)).toEqual(new Set([0]));
  });

  it("is the best one between", () => {
    const times = rows((count) => 4 + count);
    const best = (slots: number, chance: number) =>
      Math.max(...Array.from({ length: 8 }, (_, length) => gain([length], slots, chance, times)));
    for (const slots of [1, 2, 4, 16])
      for (const chance of [0.3, 0.6, 0.9]) {
        const [lengths] = choose([3000, slots, chance, times]);
        expect(gain(lengths!.slice(300), slots, chance, times), `${slots}, ${chance}`).toBeGreaterThan(
          0.93 * best(slots, chance),
        );
      }
  });

  it("follows the machine: other programs come and go", () => {
    const [, slow, again] = choose([500, 4, 0.9, flat], [1500, 4, 0.9, linear], [1500, 4, 0.9, flat]);
    expect(gain(slow!.slice(700), 4, 0.9, linear)).toBeGreaterThan(0.92);
    expect(gain(again!.slice(1000), 4, 0.9, flat)).toBeGreaterThan(4);
  });

  it("is not ended by one step that took long", () => {
    const [, , after] = choose([500, 4, 0.9, flat], [1, 4, 0.9, rows(() => 1000)], [100, 4, 0.9, flat]);
    expect(gain(after!, 4, 0.9, flat)).toBeGreaterThan(4);
  });
});
