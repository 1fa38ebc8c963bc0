import { describe, expect, it } from "vitest";
import type { MetricTable } from "../../api/index.js";
import { chooseMainMetric, describeCurves, drawProgress } from "./metrics.js";
import { describeMetric, nameMetric } from "./words.js";

const table = (columns: MetricTable["columns"], heldOut: MetricTable["heldOut"] = []): MetricTable => ({
  steps: [1, 2],
  seconds: [1, 2],
  tokens: [1, 2],
  columns: { "training/global_step": [1, 2], "val-core/task/failed_ratio": [0, 1], ...columns },
  heldOut,
});

describe("the curves that people look at first", () => {
  it("are success in training and held out, of conversations that were judged", () => {
    const heldOut = [
      { step: 0, success: 0 },
      { step: 2, success: 1 },
    ];
    expect(drawProgress(table({ "reward/score/mean": [0.25, 0.5] }, heldOut))).toEqual({
      title: "Success by step",
      series: [
        { label: "training", color: 1, x: [1, 2], y: [0.25, 0.5] },
        { label: "held out", color: 2, x: [0, 2], y: [0, 1], points: true },
      ],
    });
  });

  it("are of a loss in sft", () => {
    const drawn = drawProgress(table({ "train/loss": [3, 2], "val/loss": [null, 2.5] }))!;
    expect(drawn.series).toMatchObject([{ y: [3, 2] }, { x: [2], y: [2.5] }]);
    expect(describeCurves(drawn.title, drawn.series)).toBe("Loss by step: training from 3 to 2, held out 2.5");
  });

  it("are none if neither was measured", () => {
    expect(chooseMainMetric(["training/global_step", "val-core/task/failed_ratio"])).toBeNull();
    expect(drawProgress(table({}))).toBeNull();
  });
});

it("metrics have words, or their keys", () => {
  expect(nameMetric("critic/rewards/frac_zero_std")).toBe("Groups without a signal");
  expect(nameMetric("val-core/a/b/reward/mean@4")).toBe("Held-out reward of a/b");
  expect(nameMetric("own/number")).toBe("own/number");
  // With its key, where one chooses among all.
  expect(describeMetric("val-core/a/b/acc/mean@4")).toBe("Held-out success of a/b (val-core/a/b/acc/mean@4)");
  expect(describeMetric("own/number")).toBe("own/number");
});
