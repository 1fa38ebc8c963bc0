import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

/**
 * drafts.cc: what is proposed behind texts that were learned, and how many tokens a step drafts where rows take given
 * times.
 */
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

/** A step: drafted tokens of each sequence, and the rows that it costs. */
interface Step {
  lengths: number[];
  rows: number;
}

describe("the number of drafted tokens", () => {
  const rows = (seconds: (rows: number) => number) => Array.from({ length: 300 }, (_, i) => seconds(i + 1)).join();
  const flat = rows(() => 1);
  const linear = rows((count) => count);
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
  const readStep = (step: string): Step => {
    const [lengths, count] = step.split(":");
    return { lengths: lengths!.split("/").map(Number), rows: Number(count) };
  };
  type Phase = [steps: number, slots: number, chances: number | string, seconds: string];
  const choose = (...phases: Phase[]) =>
    drive(...phases.map((phase) => `steps ${phase.join(" ")}`)).map((line) => line.trim().split(" ").map(readStep));
  const drafted = (steps: readonly Step[]) => new Set(steps.map(({ lengths }) => sum(lengths)));

  /** Tokens per second beside those without drafts, by the drafts' true chances. */
  function gain(steps: readonly Step[], slots: number, chances: readonly number[], seconds: string): number {
    const times = seconds.split(",").map(Number);
    const tokens = ({ lengths }: Step) =>
      sum(
        lengths.map((length, s) =>
          sum(Array.from({ length: length + 1 }, (_, i) => chances[s % chances.length]! ** i)),
        ),
      );
    const speed = sum(steps.map(tokens)) / sum(steps.map((step) => times[step.rows - 1]!));
    return speed / (slots / times[slots - 1]!);
  }

  /** The best that steps with equally many tokens for some of the sequences, the likeliest, could gain. */
  function findBest(slots: number, chances: readonly number[], seconds: string): number {
    const all = Array.from({ length: slots }, (_, s) => chances[s % chances.length]!);
    const order = all.map((_, s) => s).sort((a, b) => all[b]! - all[a]!);
    let best = 1;
    for (let length = 1; length <= 7; length++)
      for (let count = 1; count <= slots; count++) {
        const chosen = new Set(order.slice(0, count));
        const lengths = all.map((_, s) => (chosen.has(s) ? length : 0));
        const used = slots + count * length;
        const cost = used + Math.floor(0.15 * (slots * (length + 1) - used));
        best = Math.max(best, gain([{ lengths, rows: cost }], slots, chances, seconds));
      }
    return best;
  }

  it("is none before anything was measured, or without a chance", () => {
    expect(drafted(choose([1, 4, 1, flat])[0]!)).toEqual(new Set([0]));
    expect(drafted(choose([200, 4, 0, flat])[0]!)).toEqual(new Set([0]));
    expect(drafted(choose([200, 4, 0.01, flat])[0]!)).toEqual(new Set([0]));
  });

  it("is the most where rows cost nothing, and none where a row costs a token: trials lose two hundredths", () => {
    const [free] = choose([300, 4, 0.9, flat]);
    const most = gain([{ lengths: [7, 7, 7, 7], rows: 32 }], 4, [0.9], flat);
    expect(gain(free!.slice(20), 4, [0.9], flat)).toBeGreaterThan(0.97 * most);
    for (const slots of [1, 4, 16, 32]) {
      const [dear] = choose([3000, slots, 0.9, linear]);
      expect(gain(dear!.slice(300), slots, [0.9], linear), `${slots}`).toBeGreaterThan(0.98);
    }
  });

  it("is none with more than 32 slots, whatever rows cost", () => {
    const [many, more] = [32, 33].map((slots) => choose([300, slots, 0.9, flat])[0]!);
    expect(Math.max(...drafted(many!))).toBe(7 * 32);
    expect(drafted(more!)).toEqual(new Set([0]));
  });

  it("is the best one between", () => {
    const times = rows((count) => 4 + count);
    for (const slots of [1, 2, 4, 16])
      for (const chance of [0.3, 0.6, 0.9]) {
        const [steps] = choose([3000, slots, chance, times]);
        expect(gain(steps!.slice(300), slots, [chance], times), `${slots}, ${chance}`).toBeGreaterThan(
          0.93 * findBest(slots, [chance], times),
        );
      }
  });

  it("is larger for sequences whose drafts are likelier", () => {
    const times = rows((count) => 20 + count);
    const chances = [0.95, 0.2, 0.2, 0.2];
    const [steps] = choose([3000, 16, chances.join(), times]);
    const after = steps!.slice(300);
    expect(gain(after, 16, chances, times)).toBeGreaterThan(0.93 * findBest(16, chances, times));
    const mean = (sequence: number) => sum(after.map(({ lengths }) => lengths[sequence]!)) / after.length;
    expect(mean(0)).toBeGreaterThan(1);
    expect(mean(1)).toBeLessThan(0.2);
    // Equal lengths for all would gain less.
    const equal = gain([{ lengths: Array<number>(16).fill(1), rows: 32 }], 16, chances, times);
    expect(gain(after, 16, chances, times)).toBeGreaterThan(1.05 * equal);
  });

  it("follows the machine: other programs come and go", () => {
    const [, slow, again] = choose([500, 4, 0.9, flat], [1500, 4, 0.9, linear], [1500, 4, 0.9, flat]);
    expect(gain(slow!.slice(700), 4, [0.9], linear)).toBeGreaterThan(0.92);
    expect(gain(again!.slice(1000), 4, [0.9], flat)).toBeGreaterThan(4);
  });

  it("is not ended by one step that took long", () => {
    const [, , after] = choose([500, 4, 0.9, flat], [1, 4, 0.9, rows(() => 1000)], [100, 4, 0.9, flat]);
    expect(gain(after!, 4, [0.9], flat)).toBeGreaterThan(4);
  });
});
