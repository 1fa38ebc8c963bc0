import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type AggregateRewardInputs,
  aggregateReward,
  defaultRewardAggregation,
  type RewardAggregation,
  rewardStrategies,
} from "./index.js";

const file = join(import.meta.dirname, "..", "fixtures", "reward-reference.json");
const reference = JSON.parse(readFileSync(file, "utf8")) as Omit<AggregateRewardInputs, "score" | "success"> & {
  cases: {
    score: number;
    success: boolean | null;
    options: Partial<RewardAggregation>;
    rewards: number[];
    total: number;
  }[];
};

describe("semantic 10: rewards are weighted, and placed by strategy", () => {
  it.each(reference.cases)("as numpy computes it: $score $options", ({ score, success, options, rewards, total }) => {
    const { responseMask, toolCallMask, toolRewards, turnScores, toolCalls } = reference;
    const inputs = { responseMask, toolCallMask, toolRewards, turnScores, toolCalls };
    const placed = aggregateReward(
      { ...inputs, score, success: success ?? undefined },
      { ...defaultRewardAggregation, ...options },
    );
    placed.forEach((value, t) => {
      expect(value, `token ${t}`).toBeCloseTo(rewards[t]!, 12);
    });
    expect(placed.reduce((a, b) => a + b, 0)).toBeCloseTo(total, 12);
  });

  const anyMask = fc.array(fc.constantFrom(0, 1), { minLength: 1, maxLength: 20 });
  const anySteps = fc.array(fc.record({ value: fc.integer({ min: -8, max: 8 }), tokenIndex: fc.nat(25) }), {
    maxLength: 4,
  });

  it.each(rewardStrategies.names())("%s: the sum stays what it is, and only sampled tokens get any", (strategy) => {
    fc.assert(
      fc.property(anyMask, anyMask, fc.integer({ min: -8, max: 8 }), anySteps, anySteps, (mask, calls, score, a, b) => {
        const options = { ...defaultRewardAggregation, strategy, gamma: 0.5, toolWeight: 2, interactionWeight: 3 };
        const inputs = { responseMask: mask, toolCallMask: calls, score, toolRewards: a, turnScores: b };
        const placed = aggregateReward(inputs, options);
        const sum = (steps: readonly { value: number }[]) => steps.reduce((total, step) => total + step.value, 0);
        const expected = mask.includes(1) ? score + 2 * sum(a) + 3 * sum(b) : 0;
        expect(placed.reduce((x, y) => x + y, 0)).toBeCloseTo(expected, 9);
        placed.forEach((value, t) => {
          if (!mask[t]) expect(value).toBe(0);
        });
      }),
    );
  });

  it("a thousand tokens do not underflow to nothing", () => {
    const responseMask = new Uint8Array(100_000).fill(1);
    const inputs = { responseMask, score: 1, toolRewards: [], turnScores: [] };
    const placed = aggregateReward(inputs, { ...defaultRewardAggregation, strategy: "exponential_decay", gamma: 0.5 });
    expect(placed.at(-1)).toBeCloseTo(0.5, 12);
    expect(placed.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 12);
  });

  it("an unknown strategy is an error that lists those that exist", () => {
    expect(() => rewardStrategies.get("middle")).toThrow(/exponential_decay, importance, last_token, uniform/);
  });
});

describe("semantic 5: a reward on an observation lands on the last sampled token before it", () => {
  it("also where an interaction ended the episode", () => {
    const inputs = { responseMask: [0, 1, 1, 0, 0], score: 1, toolRewards: [], turnScores: [] };
    const placed = aggregateReward(
      { ...inputs, turnScores: [{ value: 0.5, tokenIndex: 4 }] },
      defaultRewardAggregation,
    );
    expect([...placed]).toEqual([0, 0, 1.5, 0, 0]);
  });
});

describe("semantic 6: a trajectory without a sampled token", () => {
  it("is worth nothing, whatever was earned", () => {
    const step = [{ value: 3, tokenIndex: 1 }];
    const inputs = { responseMask: [0, 0], score: 1, toolRewards: step, turnScores: step, toolCalls: step };
    for (const strategy of rewardStrategies.names())
      expect([...aggregateReward(inputs, { ...defaultRewardAggregation, strategy, lengthPenalty: -1 })]).toEqual([
        0, 0,
      ]);
  });
});
