import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type AdvantageInputs,
  advantageEstimators,
  estimateGae,
  estimateGdpo,
  estimateGrpo,
  estimateOptimalTokenBaseline,
  estimateRloo,
} from "../internal.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1), numRuns: 50 });

/** Multiples of 1/16: no two sums are closer than that without being equal. */
const finite = (min: number, max: number) => fc.integer({ min: 16 * min, max: 16 * max }).map((x) => x / 16);

interface Row {
  group: string;
  tokens: { reward: number; mask: number; value: number; logprob: number }[];
  baseline: number;
}

const token = fc.record({
  reward: finite(-2, 2),
  mask: fc.constantFrom(0, 1, 1),
  value: finite(-2, 2),
  logprob: finite(-3, -1),
});
const row = fc.record({
  tokens: fc.array(token, { minLength: 1, maxLength: 6 }),
  baseline: finite(-2, 2),
});

/** Two or three groups of 2 to 4 trajectories, their rows mixed; each trajectory has a sampled token. */
const batches = fc
  .array(fc.array(row, { minLength: 2, maxLength: 4 }), { minLength: 2, maxLength: 3 })
  .chain((groups) => {
    const rows = groups.flatMap((members, g) =>
      members.map(({ tokens, baseline }): Row => {
        const sampled = tokens.map((t, i) => (i === 0 ? { ...t, mask: 1 } : t));
        return { group: `g${g}`, tokens: sampled, baseline };
      }),
    );
    return fc.shuffledSubarray(rows, { minLength: rows.length });
  });

function flatten(rows: readonly Row[]): AdvantageInputs {
  const tokens = rows.flatMap((r) => r.tokens);
  const offsets = [0];
  for (const r of rows) offsets.push(offsets.at(-1)! + r.tokens.length);
  return {
    tokenLevelRewards: tokens.map((t) => t.reward),
    responseMask: tokens.map((t) => t.mask),
    offsets,
    groups: rows.map((r) => r.group),
    values: tokens.map((t) => t.value),
    baselines: rows.map((r) => r.baseline),
    oldLogprobs: tokens.map((t) => t.logprob),
    // Two tokens are possible.
    sumPiSquared: tokens.map(({ logprob }) => Math.exp(logprob) ** 2 + (1 - Math.exp(logprob)) ** 2),
    rewardParts: [
      { values: rows.map((r) => r.tokens.reduce((sum, t) => sum + t.mask * t.reward, 0)), weight: 1 },
      { values: rows.map((r) => r.tokens.reduce((sum, t) => sum + t.mask * t.value, 0)), weight: 0.5 },
    ],
    gamma: 0.95,
    lam: 0.9,
  };
}

const moveRewards = (rows: readonly Row[], scale: number, shift: number): Row[] =>
  rows.map((r) => ({
    ...r,
    tokens: r.tokens.map((t, i) => ({ ...t, reward: t.reward * scale + (i === 0 ? shift : 0) })),
  }));

/** True if each group's outcomes, and the lengths that opo weighs them by, are far enough apart to divide by. */
function isSpread(rows: readonly Row[]): boolean {
  const sums = new Map<string, number[]>();
  for (const r of rows) {
    const sum = r.tokens.reduce((total, t) => total + t.mask * t.reward, 0);
    sums.set(r.group, [...(sums.get(r.group) ?? []), sum]);
  }
  return [...sums.values()].every((values) => Math.max(...values) - Math.min(...values) > 0.1);
}

function expectNear(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance = 1e-3): void {
  expect(actual.length).toBe(expected.length);
  for (let i = 0; i < expected.length; i++)
    expect(Math.abs(actual[i]! - expected[i]!)).toBeLessThan(tolerance * (1 + Math.abs(expected[i]!)));
}

describe.each(advantageEstimators.names())("advantage estimator %s", (name) => {
  const estimate = (rows: readonly Row[], options: Partial<AdvantageInputs> = {}) =>
    advantageEstimators.get(name)({ ...flatten(rows), ...options });

  it("gives masked tokens no advantage, and ignores their values", () => {
    fc.assert(
      fc.property(batches, finite(-9, 9), (rows, noise) => {
        const plain = estimate(rows);
        const disturbed = estimate(
          rows.map((r) => ({
            ...r,
            tokens: r.tokens.map((t) => (t.mask ? t : { reward: noise, value: noise, logprob: -1, mask: 0 })),
          })),
        );
        expect([...disturbed.advantages]).toEqual([...plain.advantages]);
        expect([...disturbed.returns]).toEqual([...plain.returns]);
        const { responseMask } = flatten(rows);
        for (let t = 0; t < responseMask.length; t++)
          if (!responseMask[t]) expect([plain.advantages[t], plain.returns[t]]).toEqual([0, 0]);
        // Nor does it matter whether they are there at all.
        const without = estimate(rows.map((r) => ({ ...r, tokens: r.tokens.filter((t) => t.mask) })));
        expect([...without.advantages]).toEqual([...plain.advantages].filter((_, t) => responseMask[t]));
      }),
    );
  });

  // The baselines of rae follow the returns in their order.
  const ordered = ["rae", "raft"];
  it.skipIf(ordered.includes(name))("follows permutations of trajectories and names of groups", () => {
    fc.assert(
      fc.property(batches, (rows) => {
        fc.pre(isSpread(rows));
        const plain = estimate(rows);
        const { offsets } = flatten(rows);
        const reversed = rows.map((r) => ({ ...r, group: `other ${r.group}` })).reverse();
        const moved = estimate(reversed);
        const back = rows.flatMap((_, i) => {
          const from = flatten(reversed).offsets[rows.length - 1 - i]!;
          return [...moved.advantages.slice(from, from + offsets[i + 1]! - offsets[i]!)];
        });
        expectNear(back, plain.advantages);
      }),
    );
  });

  const shiftFree = ["grpo", "grpo_passk", "rloo", "reinforce_plus_plus_baseline", "opo", "gdpo", "gigpo", "mt_grpo"];
  const scaleFree = [
    "grpo",
    "grpo_passk",
    "reinforce_plus_plus",
    "reinforce_plus_plus_baseline",
    "mt_grpo",
    "max_rl",
    "raft",
  ];
  const scaled = ["rloo", "opo", "gpg", "optimal_token_baseline", "gigpo"];

  if (shiftFree.includes(name))
    it("ignores a shift of all rewards", () => {
      fc.assert(
        fc.property(batches, finite(-5, 5), (rows, shift) => {
          fc.pre(isSpread(rows));
          expectNear(estimate(moveRewards(rows, 1, shift)).advantages, estimate(rows).advantages);
        }),
      );
    });

  if (scaleFree.includes(name))
    it("ignores a scale of all rewards", () => {
      fc.assert(
        fc.property(batches, finite(0.5, 4), (rows, scale) => {
          fc.pre(isSpread(rows));
          expectNear(estimate(moveRewards(rows, scale, 0)).advantages, estimate(rows).advantages);
        }),
      );
    });

  if (scaled.includes(name))
    it("scales with the rewards", () => {
      fc.assert(
        fc.property(batches, finite(0.5, 4), (rows, scale) => {
          const expected = estimate(rows).advantages.map((a) => a * scale);
          expectNear(estimate(moveRewards(rows, scale, 0)).advantages, expected);
        }),
      );
    });

  if (["grpo", "grpo_passk"].includes(name))
    it("scales with the rewards without the division by std", () => {
      fc.assert(
        fc.property(batches, finite(0.5, 4), (rows, scale) => {
          const options = { normalizeByStd: false };
          const expected = estimate(rows, options).advantages.map((a) => a * scale);
          expectNear(estimate(moveRewards(rows, scale, 0), options).advantages, expected);
        }),
      );
    });

  if (["grpo", "rloo", "gpg", "gigpo", "mt_grpo", "max_rl"].includes(name))
    it("sums to 0 over a group's trajectories", () => {
      fc.assert(
        fc.property(batches, (rows) => {
          fc.pre(isSpread(rows));
          const { advantages } = estimate(rows);
          const { offsets } = flatten(rows);
          const sums = new Map<string, number>();
          rows.forEach((r, i) => {
            sums.set(r.group, (sums.get(r.group) ?? 0) + advantages[offsets[i]!]!);
          });
          for (const sum of sums.values()) expect(Math.abs(sum)).toBeLessThan(1e-4);
        }),
      );
    });

  if (["gae", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "gdpo"].includes(name))
    it("is white over the mask", () => {
      fc.assert(
        fc.property(batches, (rows) => {
          fc.pre(isSpread(rows));
          const sampled = [...estimate(rows).advantages].filter((_, t) => flatten(rows).responseMask[t]);
          const mean = sampled.reduce((a, b) => a + b, 0) / sampled.length;
          const variance = sampled.reduce((sum, a) => sum + (a - mean) ** 2, 0) / (sampled.length - 1);
          expect(Math.abs(mean)).toBeLessThan(1e-4);
          expect(Math.abs(variance - 1)).toBeLessThan(1e-3);
        }),
      );
    });

  it("has a finite answer for trajectories without a sampled token, and for none at all", () => {
    const empty = { group: "g", baseline: 1, tokens: [{ reward: 1, mask: 0, value: 1, logprob: -1 }] };
    const one = { group: "g", baseline: 0.5, tokens: [{ reward: 1, mask: 1, value: 0.25, logprob: -1 }] };
    const { advantages } = estimate([empty, one, empty]);
    expect([advantages[0], advantages[2]]).toEqual([0, 0]);
    expect(Number.isFinite(advantages[1])).toBe(true);
    expect(estimate([]).advantages).toHaveLength(0);
  });
});

describe("hand-computed advantages", () => {
  const inputs = (rewards: number[], groups: string[]): AdvantageInputs => ({
    tokenLevelRewards: rewards,
    responseMask: rewards.map(() => 1),
    offsets: Array.from({ length: rewards.length + 1 }, (_, i) => i),
    groups,
  });

  it("grpo: mean 0.5 and unbiased std sqrt(1/3); a group of one keeps its reward; Dr. GRPO leaves the scale", () => {
    const expected = 0.5 / (Math.sqrt(1 / 3) + 1e-6);
    const { advantages } = estimateGrpo(inputs([1, 0, 0, 1], ["a", "a", "a", "a"]));
    expectNear(advantages, [expected, -expected, -expected, expected], 1e-6);
    expectNear(estimateGrpo(inputs([3], ["a"])).advantages, [3], 1e-4);
    const centered = estimateGrpo({ ...inputs([1, 0], ["a", "a"]), normalizeByStd: false });
    expect([...centered.advantages]).toEqual([0.5, -0.5]);
  });

  it("equal rewards give exactly 0, whatever their sum rounds to", () => {
    // 0.1 + 0.1 + 0.1 is not 0.3.
    const equal = inputs([0.1, 0.1, 0.1, 0.7, 0.7, 0.7], ["a", "a", "a", "b", "b", "b"]);
    for (const name of ["grpo", "grpo_passk", "rloo", "opo", "gpg", "gigpo", "mt_grpo", "max_rl"])
      expect(new Set(advantageEstimators.get(name)(equal).advantages), name).toEqual(new Set([0]));
  });

  it("max_rl: in units of the pass rate, so that the rare success counts more; 0 without any success", () => {
    const { advantages } = advantageEstimators.get("max_rl")(
      inputs([1, 0, 0, 0, 1, 1, 1, 0, 0, 0, -1, 0], [..."aaaabbbbccdd"]),
    );
    const third = -1 / 3;
    expectNear(advantages, [3, -1, -1, -1, -third, -third, -third, -1, 0, 0, 0, 0], 1e-6);
    expect([...advantageEstimators.get("max_rl")(inputs([3], ["a"])).advantages]).toEqual([0]);
  });

  it("raft: 1 for the first of a group's best, whatever its reward; 0 for all others, and where none earns", () => {
    const { advantages } = advantageEstimators.get("raft")(
      inputs([0, 0.2, 0.9, 0.9, 1, 0.5, 0, 0, -1, -2, 3], [..."aaaabbccdde"]),
    );
    expect([...advantages]).toEqual([0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1]);
  });

  it("rloo: each reward minus the mean of the others", () => {
    expectNear(estimateRloo(inputs([1, 0, 5], ["a", "a", "a"])).advantages, [-1.5, -3, 4.5], 1e-6);
  });

  it("optimal_token_baseline: weighs by the uncertainty so far, counts sampled tokens alone, and stops with the second", () => {
    const sure = Math.log(1 - 1e-9);
    const { advantages } = estimateOptimalTokenBaseline({
      // A tool speaks inside of the first trajectory; the second one is shorter.
      tokenLevelRewards: [0, 9, 0, 1, 0, 4],
      responseMask: [1, 0, 1, 1, 1, 1],
      offsets: [0, 4, 6],
      groups: ["a", "a"],
      // Squared norms: 1/2 for a fair coin of two, 0 where nothing else was possible.
      oldLogprobs: [Math.log(0.5), 0, sure, sure, sure, Math.log(0.5)],
      sumPiSquared: [0.5, 0, 1, 1, 1, 0.5],
    });
    // First tokens: all energy is the first trajectory's. Second tokens: 1/2 each, baseline 2.5. Third: nobody to compare with.
    expectNear(advantages, [0, 0, 1 - 2.5, 1, 3, 4 - 2.5], 1e-5);
  });

  it("gdpo: rewards of the same sum keep apart, and a part that is constant says nothing", () => {
    const parts = (...values: number[][]) => values.map((part) => ({ values: part, weight: 1 }));
    const rewards = inputs([0, 0, 0], ["a", "a", "a"]);
    const { advantages } = estimateGdpo({ ...rewards, rewardParts: parts([1, 0, 0], [0, 1, 2]) });
    // Normalised: (2, -1, -1) / sqrt 3 and (-1, 0, 1): the sums of the first two rewards are equal, these are not.
    expect(advantages[0]).toBeGreaterThan(0.1);
    expect(advantages[1]).toBeLessThan(-0.1);
    const more = estimateGdpo({ ...rewards, rewardParts: parts([1, 0, 0], [0, 1, 2], [7, 7, 7]) });
    expect([...more.advantages]).toEqual([...advantages]);
  });

  it("gae carries value and advantage through a tool's text, at no discount", () => {
    const { returns } = estimateGae({
      tokenLevelRewards: [0, 9, 9, 1],
      responseMask: [1, 0, 0, 1],
      offsets: [0, 4],
      groups: ["a"],
      values: [0.5, 7, 7, 0.25],
      gamma: 0.5,
      lam: 1,
    });
    // The last sampled token: 1. The first: 0.5 * 1, whatever the tool's text was given.
    expect([...returns]).toEqual([0.5, 0, 0, 1]);
  });
});

describe("missing inputs", () => {
  const inputs = flatten([{ group: "g", baseline: 0, tokens: [{ reward: 1, mask: 1, value: 0, logprob: -1 }] }]);

  it.each([
    ["gae", "values", "config/needs-critic"],
    ["remax", "baselines", "config/needs-baseline"],
    ["gdpo", "rewardParts", "config/needs-reward-parts"],
    ["optimal_token_baseline", "sumPiSquared", "config/needs-probabilities"],
  ])("of %s are named: %s", (name, input, code) => {
    const estimate = () => advantageEstimators.get(name)({ ...inputs, [input]: undefined });
    const subject = `algorithm.adv_estimator "${name}"`;
    expect(estimate).toThrow(expect.objectContaining({ code, subject, expected: expect.stringContaining(input) }));
  });

  it("an unknown name is refused, with the known ones", () => {
    const expected = expect.stringContaining("grpo, grpo_passk");
    const refused = expect.objectContaining({ code: "config/unknown-name", received: "gropo", expected });
    expect(() => advantageEstimators.get("gropo")).toThrow(refused);
  });

  it("grpo_passk refuses a group of one", () => {
    const refused = expect.objectContaining({ code: "data/group-too-small", subject: "group g", received: "1" });
    expect(() => advantageEstimators.get("grpo_passk")(inputs)).toThrow(refused);
  });
});
