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
} from "./internal.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

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
    const { tokenLevel: placed, ...parts } = aggregateReward(
      { ...inputs, score, success: success ?? undefined },
      { ...defaultRewardAggregation, ...options },
    );
    expect(parts.outcome + parts.length + parts.tools + parts.turns).toBeCloseTo(total, 12);
    placed.forEach((value, t) => {
      expect(value, `token ${t}`).toBeCloseTo(rewards[t]!, 12);
    });
    expect(placed.reduce((a, b) => a + b, 0)).toBeCloseTo(total, 12);
  });

  const anyMask = fc.array(fc.constantFrom(0, 1), { minLength: 1, maxLength: 20 });
  const anySteps = fc.array(fc.record({ value: fc.integer({ min: -8, max: 8 }), tokenIndex: fc.nat(25) }), {
    maxLength: 4,
  });

  it.each(rewardStrategies.names())("%s: the sum stays the same, and only sampled tokens get any", (strategy) => {
    fc.assert(
      fc.property(anyMask, anyMask, fc.integer({ min: -8, max: 8 }), anySteps, anySteps, (mask, calls, score, a, b) => {
        const options = { ...defaultRewardAggregation, strategy, gamma: 0.5, toolWeight: 2, interactionWeight: 3 };
        const inputs = { responseMask: mask, toolCallMask: calls, score, toolRewards: a, turnScores: b };
        const { tokenLevel: placed } = aggregateReward(inputs, options);
        const sum = (steps: readonly { value: number }[]) => steps.reduce((total, step) => total + step.value, 0);
        const expected = mask.includes(1) ? score + 2 * sum(a) + 3 * sum(b) : 0;
        expect(placed.reduce((x, y) => x + y, 0)).toBeCloseTo(expected, 9);
        placed.forEach((value, t) => {
          if (!mask[t]) expect(value).toBe(0);
        });
      }),
    );
  });

  it("a thousand tokens do not underflow to 0", () => {
    const responseMask = new Uint8Array(100_000).fill(1);
    const inputs = { responseMask, score: 1, toolRewards: [], turnScores: [] };
    const options = { ...defaultRewardAggregation, strategy: "exponential_decay", gamma: 0.5 };
    const { tokenLevel: placed } = aggregateReward(inputs, options);
    expect(placed.at(-1)).toBeCloseTo(0.5, 12);
    expect(placed.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 12);
  });

  it("refuses an unknown strategy, and lists the known ones", () => {
    expect(() => rewardStrategies.get("middle")).toThrow(
      expect.objectContaining({
        code: "config/unknown-name",
        expected: expect.stringContaining("exponential_decay, importance, last_token, uniform"),
        received: "middle",
      }),
    );
  });
});

describe("semantic 5: a reward on an observation lands on the last sampled token before it", () => {
  it("also where an interaction ended the episode", () => {
    const inputs = { responseMask: [0, 1, 1, 0, 0], score: 1, toolRewards: [], turnScores: [] };
    const { tokenLevel, ...parts } = aggregateReward(
      { ...inputs, turnScores: [{ value: 0.5, tokenIndex: 4 }] },
      defaultRewardAggregation,
    );
    expect([...tokenLevel]).toEqual([0, 0, 1.5, 0, 0]);
    expect(parts).toEqual({ outcome: 1, length: 0, tools: 0, turns: 0.5 });
  });
});

describe("semantic 6: a trajectory without a sampled token", () => {
  it("is worth 0 with any rewards", () => {
    const step = [{ value: 3, tokenIndex: 1 }];
    const inputs = { responseMask: [0, 0], score: 1, toolRewards: step, turnScores: step, toolCalls: step };
    const tokenLevel = new Float64Array(2);
    for (const strategy of rewardStrategies.names())
      expect(aggregateReward(inputs, { ...defaultRewardAggregation, strategy, lengthPenalty: -1 })).toEqual({
        outcome: 0,
        length: 0,
        tools: 0,
        turns: 0,
        tokenLevel,
      });
  });
});

describe("tool calls", () => {
  it("are searched only if a bonus or the strategy needs them", () => {
    let asked = 0;
    const inputs = {
      responseMask: [1, 1],
      score: 1,
      toolRewards: [],
      turnScores: [],
      get toolCalls() {
        asked++;
        return [{ value: 2, tokenIndex: 1 }];
      },
      get toolCallMask() {
        asked++;
        return [1, 0];
      },
    };
    for (const strategy of ["last_token", "uniform", "exponential_decay"])
      aggregateReward(inputs, { ...defaultRewardAggregation, strategy });
    expect(asked).toBe(0);
    const bonus = aggregateReward(inputs, { ...defaultRewardAggregation, toolCallBonus: 0.5 });
    expect([bonus.tools, ...bonus.tokenLevel]).toEqual([1, 0, 2]);
    const shared = aggregateReward(inputs, { ...defaultRewardAggregation, strategy: "importance" });
    expect([...shared.tokenLevel]).toEqual([0.8, 0.2]);
  });
});
