import { describe, expect, it } from "vitest";
import { advantageEstimators } from "../index.js";
import { equalRows, expectClose } from "../stored-values/stored-values.js";
import { trlValues } from "./trl-values.js";

type AdvantageCase = (typeof trlValues.advantages)[number];

/** TRL computes rewards in float32. */
const TOLERANCE = 1e-5;

/** One token for each row. */
function estimate(c: AdvantageCase, name: string, normalizeByStd: boolean): number[] {
  const rows = c.rewards[0]!.length;
  const { advantages } = advantageEstimators.get(name)({
    tokenLevelRewards: c.rewards[0]!,
    responseMask: new Array(rows).fill(1),
    offsets: equalRows(rows, 1),
    groups: c.rewards[0]!.map((_, i) => String(Math.floor(i / c.group))),
    rewardParts: c.rewards.map((values, i) => ({ values, weight: c.settings.reward_weights?.[i] ?? 1 })),
    normalizeByStd,
  });
  return [...advantages];
}

const deviationOf = (values: readonly number[]) => {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
};
const find = (scale: string) => trlValues.advantages.filter((c) => c.settings.scale_rewards === scale);

describe(`advantages by TRL ${trlValues.trl}`, () => {
  it.each(find("none"))("without scaling, $name", (c) => {
    expectClose(estimate(c, "grpo", false), c.advantages, TOLERANCE);
  });

  it.each(find("group"))("by a group's deviation plus 1e-6 here, 1e-4 there, $name", (c) => {
    const ours = estimate(c, "grpo", true);
    const expected = c.advantages.map((advantage, i) => {
      const first = i - (i % c.group);
      const deviation = deviationOf(c.rewards[0]!.slice(first, first + c.group));
      return (advantage * (deviation + 1e-4)) / (deviation + 1e-6);
    });
    expectClose(ours, expected, TOLERANCE);
    expect(ours.slice(c.group, 2 * c.group)).toEqual(new Array(c.group).fill(0));
  });

  it.each(find("batch"))("by the batch's deviation there, which no estimator here does, $name", (c) => {
    const scale = deviationOf(c.rewards[0]!) + 1e-4;
    const ours = estimate(c, "grpo", false).map((advantage) => advantage / scale);
    expectClose(ours, c.advantages, TOLERANCE);
  });

  it("of several rewards, normalised each for itself, to the 1e-4 that TRL adds to deviations", () => {
    const [c, ...more] = trlValues.advantages.filter((c) => c.settings.multi_objective_aggregation);
    expect(more).toEqual([]);
    expectClose(estimate(c!, "gdpo", true), c!.advantages, 1e-3);
  });
});
