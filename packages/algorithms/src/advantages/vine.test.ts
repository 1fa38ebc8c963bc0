import { describe, expect, it } from "vitest";
import { type AdvantageInputs, advantageEstimators } from "../index.js";

const vine = advantageEstimators.get("vine");

/** Trajectories of a prompt's token and turns of two tokens, with a tool's token between them; the reward is at the end. */
function join(
  turnCounts: readonly number[],
  rewards: readonly number[],
  more: Partial<AdvantageInputs> = {},
): AdvantageInputs {
  const masks = turnCounts.map((count) => Array.from({ length: count }, () => [0, 1, 1]).flat());
  const offsets = [0];
  for (const mask of masks) offsets.push(offsets.at(-1)! + mask.length);
  return {
    tokenLevelRewards: masks.flatMap((mask, i) => mask.map((_, t) => (t === mask.length - 1 ? rewards[i]! : 0))),
    responseMask: masks.flat(),
    offsets,
    groups: rewards.map(() => "a"),
    ...more,
  };
}

const byTurn = (values: readonly number[]) => values.flatMap((value) => [0, value, value]);
const round = (values: ArrayLike<number>) => Array.from(values, (value) => Number(value.toFixed(5)));

describe("vine", () => {
  it("is the value after a turn less the value before it", () => {
    // V_0 is the mean of 1, 0 and 0.5.
    const { advantages, metrics } = vine(join([3, 2, 1], [1, 0, 0.5], { turnValues: [[0.25, 0.75], [0.75], []] }));
    expect(round(advantages)).toEqual(byTurn([-0.25, 0.5, 0.25, 0.25, -0.75, 0]));
    expect(metrics["turn_values/mean"]).toBeCloseTo(1.75 / 3, 6);
  });

  it("shares what turns bring together whose values are unknown", () => {
    const { advantages } = vine(
      join([3, 3], [1, 0], {
        turnValues: [
          [null, 0.75],
          [0.25, null],
        ],
      }),
    );
    expect(round(advantages)).toEqual(byTurn([0.25, 0.25, 0.25, -0.25, -0.25, -0.25]));
  });

  it("counts rewards of turns once, as part of the values", () => {
    // The first turn earns 0.5 of 1.5; the value of what follows is measured with it.
    const inputs = join([2, 1], [1, 0.5], { turnValues: [[1], []] });
    const tokenLevelRewards = Float32Array.from(inputs.tokenLevelRewards);
    tokenLevelRewards[2] = 0.5;
    expect(round(vine({ ...inputs, tokenLevelRewards }).advantages)).toEqual(byTurn([0, 0.5, -0.5]));
  });

  it("adds up to the reward less the group's mean, in each group", () => {
    const inputs = join([2, 2, 1, 1], [1, 0, 2, 4], {
      groups: ["a", "a", "b", "b"],
      turnValues: [[0.3], [0.9], [], []],
    });
    expect(round(vine(inputs).advantages)).toEqual(byTurn([-0.2, 0.7, 0.4, -0.9, -1, 1]));
  });
});
