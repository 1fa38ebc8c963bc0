import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maskedVariance, maskedWhiten, placeRewards } from "./index.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

describe("placeRewards", () => {
  it("puts the trajectory's reward on the last sampled token, and steps where they were earned", () => {
    const responseMask = [0, 0, 1, 1, 0, 0, 1, 0];
    expect([...placeRewards({ responseMask, reward: 1 })]).toEqual([0, 0, 0, 0, 0, 0, 1, 0]);
    const steps = [
      { value: -0.5, tokenIndex: 3 },
      { value: 0.25, tokenIndex: 5 }, // an observation: its call ended at 3
      { value: 2, tokenIndex: 7 }, // an interaction that ended the episode
      { value: 4, tokenIndex: 0 }, // before anything was sampled
    ];
    expect([...placeRewards({ responseMask, reward: 1, steps })]).toEqual([0, 0, 4, -0.25, 0, 0, 3, 0]);
    expect([...placeRewards({ responseMask: [0, 0, 0], reward: 1 })]).toEqual([0, 0, 0]);
  });

  it("keeps the sum, and never rewards a token that was not sampled", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(0, 1), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: -8, max: 8 }),
        fc.array(fc.record({ value: fc.integer({ min: -8, max: 8 }), tokenIndex: fc.nat(25) }), { maxLength: 4 }),
        (responseMask, reward, steps) => {
          const placed = placeRewards({ responseMask, reward, steps });
          const total = reward + steps.reduce((sum, step) => sum + step.value, 0);
          expect(placed.reduce((a, b) => a + b, 0)).toBe(responseMask.includes(1) ? total : 0);
          placed.forEach((value, i) => {
            if (!responseMask[i]) expect(value).toBe(0);
          });
        },
      ),
    );
  });
});

describe("maskedWhiten", () => {
  it("gives mean 0 and variance 1, for any values outside the mask", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: -50, max: 50 }), fc.boolean()), { minLength: 4, maxLength: 30 }),
        fc.integer({ min: -1000, max: 1000 }),
        (entries, noise) => {
          const mask = entries.map(([, on]) => (on ? 1 : 0));
          const values = entries.map(([value]) => value);
          fc.pre(maskedVariance(values, mask) > 0.1);
          const white = maskedWhiten(values, mask);
          expect(white.reduce((a, b) => a + b, 0)).toBeCloseTo(0, 6);
          expect(maskedVariance(white, mask)).toBeCloseTo(1, 5);
          const disturbed = maskedWhiten(
            values.map((value, i) => (mask[i] ? value : noise)),
            mask,
          );
          expect([...disturbed]).toEqual([...white]);
        },
      ),
    );
  });
});
