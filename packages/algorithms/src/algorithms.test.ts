import type { LossFunction, LossInputs } from "@cria/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { composePolicyLoss, crossEntropyLoss, defaultPolicyLoss, estimateGrpo, klEstimates } from "./index.js";

const finite = (min: number, max: number) => fc.double({ min, max, noNaN: true, noDefaultInfinity: true });

describe("grpo advantages", () => {
  it("equals a hand-computed group", () => {
    // mean 0.5, unbiased std sqrt(1/3)
    const advantages = estimateGrpo({ rewards: [1, 0, 0, 1], groups: ["a", "a", "a", "a"] });
    const expected = 0.5 / (Math.sqrt(1 / 3) + 1e-6);
    expect([...advantages].map((a) => a.toFixed(5))).toEqual(
      [expected, -expected, -expected, expected].map((a) => a.toFixed(5)),
    );
    expect([...estimateGrpo({ rewards: [3], groups: ["a"] })][0]).toBeCloseTo(3, 4);
    expect([...estimateGrpo({ rewards: [1, 0], groups: ["a", "a"], normalizeByStd: false })]).toEqual([0.5, -0.5]);
  });

  it("ignores shifts and scales of a group's rewards, and follows permutations", () => {
    fc.assert(
      fc.property(
        fc.array(finite(-5, 5), { minLength: 3, maxLength: 8 }),
        finite(-10, 10),
        finite(0.5, 4),
        (rewards, shift, scale) => {
          fc.pre(Math.max(...rewards) - Math.min(...rewards) > 0.1);
          const groups = rewards.map(() => "g");
          const plain = estimateGrpo({ rewards, groups });
          const moved = estimateGrpo({ rewards: rewards.map((r) => r * scale + shift), groups });
          const reversed = estimateGrpo({ rewards: [...rewards].reverse(), groups }).reverse();
          plain.forEach((a, i) => {
            expect(moved[i]).toBeCloseTo(a, 3);
            expect(reversed[i]).toBeCloseTo(a, 4);
          });
          expect(plain.reduce((x, y) => x + y, 0)).toBeCloseTo(0, 3);
        },
      ),
    );
  });
});

/** A micro-batch of random tokens in two sequences. */
const inputs = fc
  .array(fc.tuple(finite(-4, -0.1), finite(-4, -0.1), finite(-2, 2), finite(-4, -0.1), finite(0, 3)), {
    minLength: 2,
    maxLength: 12,
  })
  .map((tokens): LossInputs => {
    const column = (k: number) => Float32Array.from(tokens, (t) => t[k]!);
    return {
      sequenceIndices: Int32Array.of(0, 1),
      offsets: Int32Array.of(0, 1, tokens.length),
      logprobs: column(0),
      entropy: column(4),
      columns: { oldLogprobs: column(1), advantages: column(2), refLogprobs: column(3) },
      totals: { tokens: tokens.length + 5, sequences: 3 },
    };
  });

function cut(whole: LossInputs, from: number, to: number): LossInputs {
  const slice = (values: Float32Array) => values.slice(from, to);
  return {
    ...whole,
    sequenceIndices: Int32Array.of(0),
    offsets: Int32Array.of(0, to - from),
    logprobs: slice(whole.logprobs),
    entropy: slice(whole.entropy),
    columns: Object.fromEntries(Object.entries(whole.columns).map(([name, values]) => [name, slice(values)])),
  };
}

const losses: [string, LossFunction][] = [
  ["vanilla", composePolicyLoss(defaultPolicyLoss)],
  ["cross entropy", crossEntropyLoss],
];
for (const type of ["k1", "abs", "k2", "k3"]) {
  losses.push([
    `vanilla + ${type} + entropy`,
    composePolicyLoss({ ...defaultPolicyLoss, entropyCoeff: 0.02, kl: { coefficient: 0.1, type } }),
  ]);
}

describe.each(losses)("%s", (_name, loss) => {
  it("has the gradient that finite differences find", () => {
    fc.assert(
      fc.property(inputs, fc.nat(), (batch, pick) => {
        const at = pick % batch.logprobs.length;
        const { dLogprobs, dEntropy } = loss(batch);
        for (const [values, gradient] of [
          [batch.logprobs, dLogprobs],
          [batch.entropy, dEntropy],
        ] as const) {
          const center = values[at]!;
          const slope = (step: number) => {
            values[at] = center + step;
            const above = loss(batch).loss;
            const upper = values[at]!;
            values[at] = center - step;
            const below = loss(batch).loss;
            const lower = values[at]!;
            values[at] = center;
            return (above - below) / (upper - lower);
          };
          // Clipping has kinks: two step sizes that disagree straddle one.
          const numeric = slope(1e-3);
          if (Math.abs(numeric - slope(5e-4)) > 1e-4 * (1 + Math.abs(numeric))) continue;
          expect(Math.abs(numeric - (gradient?.[at] ?? 0))).toBeLessThan(2e-3 * (1 + Math.abs(numeric)));
        }
      }),
    );
  });

  it("adds up over micro-batches", () => {
    fc.assert(
      fc.property(inputs, fc.nat(), (batch, pick) => {
        const at = 1 + (pick % (batch.logprobs.length - 1));
        const whole = loss(batch);
        const parts = [loss(cut(batch, 0, at)), loss(cut(batch, at, batch.logprobs.length))];
        expect(parts[0]!.loss + parts[1]!.loss).toBeCloseTo(whole.loss, 6);
        expect([...parts[0]!.dLogprobs, ...parts[1]!.dLogprobs]).toEqual([...whole.dLogprobs]);
      }),
    );
  });
});

describe("vanilla loss", () => {
  const at = (logprob: number, old: number, advantage: number) =>
    composePolicyLoss(defaultPolicyLoss)({
      sequenceIndices: Int32Array.of(0),
      offsets: Int32Array.of(0, 1),
      logprobs: Float32Array.of(logprob),
      entropy: Float32Array.of(0),
      columns: { oldLogprobs: Float32Array.of(old), advantages: Float32Array.of(advantage) },
      totals: { tokens: 1, sequences: 1 },
    });

  it("clips on the side that the advantage rewards, and bounds negative advantages", () => {
    expect(at(Math.log(1.5), 0, 1)).toMatchObject({ loss: expect.closeTo(-1.2, 5), metrics: { pg_clipfrac: 1 } });
    expect(at(Math.log(0.5), 0, -1).loss).toBeCloseTo(0.8, 5);
    expect(at(Math.log(1.1), 0, 1).loss).toBeCloseTo(-1.1, 5);
    expect(at(Math.log(5), 0, -1)).toMatchObject({ loss: expect.closeTo(3, 5), metrics: { pg_clipfrac_lower: 1 } });
    expect(at(30, 0, 1).dLogprobs[0]).toBe(0);
  });
});

describe("KL estimates", () => {
  it("are 0 at equality; k2 and k3 are never negative", () => {
    for (const type of ["k1", "abs", "k2", "k3"]) expect(klEstimates.get(type)(0).value).toBe(0);
    fc.assert(
      fc.property(finite(-30, 30), (d) => klEstimates.get("k3")(d).value >= 0 && klEstimates.get("k2")(d).value >= 0),
    );
    expect(() => klEstimates.get("k9")).toThrow(/abs, k1, k2, k3/);
  });
});

describe("groups", () => {
  it("do not see each other, in whatever order they come", () => {
    const one = estimateGrpo({ rewards: [1, 0, 0], groups: ["a", "a", "a"] });
    const other = estimateGrpo({ rewards: [5, 2, 2], groups: ["b", "b", "b"] });
    const mixed = estimateGrpo({ rewards: [5, 1, 2, 0, 0, 2], groups: ["b", "a", "b", "a", "a", "b"] });
    expect([...mixed]).toEqual([other[0], one[0], other[1], one[1], one[2], other[2]]);
  });
});

describe("weighted cross entropy", () => {
  it("counts a token of weight 0 in the denominator alone", () => {
    const result = crossEntropyLoss({
      sequenceIndices: Int32Array.of(0),
      offsets: Int32Array.of(0, 3),
      logprobs: Float32Array.of(-1, -2, -4),
      entropy: new Float32Array(3),
      columns: { weights: Float32Array.of(1, 0, 0.5) },
      totals: { tokens: 4, sequences: 1 },
    });
    expect(result.loss).toBeCloseTo((1 + 2) / 4, 6);
    expect([...result.dLogprobs]).toEqual([-0.25, -0, -0.125]);
  });
});

describe("unknown names", () => {
  it("are refused with what there is, when the loss is composed", () => {
    expect(() => composePolicyLoss({ ...defaultPolicyLoss, lossMode: "vanila" })).toThrow(/vanilla/);
    expect(() => composePolicyLoss({ ...defaultPolicyLoss, lossAggMode: "mean" })).toThrow(/token-mean/);
    expect(() => composePolicyLoss({ ...defaultPolicyLoss, kl: { coefficient: 1, type: "k7" } })).toThrow(/low_var_kl/);
  });
});
