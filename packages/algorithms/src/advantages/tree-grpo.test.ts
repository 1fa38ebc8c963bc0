import { describe, expect, it } from "vitest";
import { type AdvantageInputs, advantageEstimators } from "../index.js";

const treeGrpo = advantageEstimators.get("tree_grpo");

/** Trajectories of a prompt's token and two sampled ones, whose last has the reward. */
const join = (rewards: readonly number[], more: Partial<AdvantageInputs> = {}): AdvantageInputs => ({
  tokenLevelRewards: rewards.flatMap((reward) => [0, 0, reward]),
  responseMask: rewards.flatMap(() => [0, 1, 1]),
  offsets: [...Array(rewards.length + 1).keys()].map((i) => 3 * i),
  groups: rewards.map(() => "a"),
  ...more,
});
const estimate = (rewards: readonly number[], more: Partial<AdvantageInputs> = {}) =>
  treeGrpo(join(rewards, more)).advantages;
const spread = (values: readonly number[]) => values.flatMap((value) => [0, value, value]);
const expectClose = (values: ArrayLike<number>, expected: readonly number[]) => {
  expect(values).toHaveLength(expected.length);
  expected.forEach((value, i) => {
    expect(values[i]).toBeCloseTo(value, 4);
  });
};

describe("tree_grpo", () => {
  it("adds what the prompt's leaves and what the tree's leaves say", () => {
    // Two trees: [1, 0, 0] and [1, 1, 0]. The prompt: mean 1/2, sum of squares 6/4, std sqrt(1.5 / 5) = 0.5477.
    // Trees: means 1/3 and 2/3, std sqrt((4/9 + 1/9 + 1/9) / 2) = 0.5774.
    const rewards = [1, 0, 0, 1, 1, 0];
    const trees = [0, 0, 0, 1, 1, 1];
    const prompt = 0.5 / Math.sqrt(0.3);
    const tree = Math.sqrt(3);
    expectClose(
      estimate(rewards, { trees }),
      spread([
        prompt + (2 / 3) * tree,
        -prompt - (1 / 3) * tree,
        -prompt - (1 / 3) * tree,
        prompt + (1 / 3) * tree,
        prompt + (1 / 3) * tree,
        -prompt - (2 / 3) * tree,
      ]),
    );
    expectClose(
      estimate(rewards, { trees, normalizeByStd: false }),
      spread([1 / 2 + 2 / 3, -1 / 2 - 1 / 3, -1 / 2 - 1 / 3, 1 / 2 + 1 / 3, 1 / 2 + 1 / 3, -1 / 2 - 2 / 3]),
    );
  });

  it("compares trees of equal leaves with each other alone", () => {
    const trees = [0, 0, 1, 1];
    expectClose(estimate([1, 1, 0, 0], { trees, normalizeByStd: false }), spread([0.5, 0.5, -0.5, -0.5]));
  });

  it("is grpo without trees, and for trees of one leaf", () => {
    const rewards = [1, 0, 0.5, 2];
    const grpo = advantageEstimators.get("grpo")(join(rewards)).advantages;
    expect(estimate(rewards)).toEqual(grpo);
    expect(estimate(rewards, { trees: [null, null, null, null] })).toEqual(grpo);
    expect(estimate(rewards, { trees: [0, 1, 2, 3] })).toEqual(grpo);
  });

  it("keeps trees of other prompts apart", () => {
    const groups = ["a", "a", "b", "b"];
    const given = { groups, trees: [0, 0, 0, 0], normalizeByStd: false };
    expectClose(estimate([1, 0, 9, 9], given), spread([1, -1, 0, 0]));
  });
});
