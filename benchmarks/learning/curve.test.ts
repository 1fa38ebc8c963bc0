import { describe, expect, it } from "vitest";
import { averageSuccess, type Curve, findTokens, readSuccess } from "./curve.js";
import { readSpread } from "./draw-curves.js";

const curve: Curve = [
  { tokens: 0, success: 0 },
  { tokens: 100, success: 0.2 },
  { tokens: 300, success: 0.8 },
  { tokens: 400, success: 0.6 },
];

describe("a curve", () => {
  it("has the success of straight lines between its points, and of the last one behind it", () => {
    const read = [0, 50, 100, 200, 350, 400, 999].map((tokens) => readSuccess(curve, tokens));
    expect(read).toEqual([0, 0.1, 0.2, 0.5, 0.7, 0.6, 0.6].map((value) => expect.closeTo(value, 12)));
  });

  it("has a mean success by token, not by point", () => {
    // Areas of trapezoids: 100 x 0.1 + 200 x 0.5 + 100 x 0.7.
    expect(averageSuccess(curve, 400)).toBeCloseTo(180 / 400, 12);
    // Cut at 200, where the line is at 0.5: 10 + 100 x 0.35.
    expect(averageSuccess(curve, 200)).toBeCloseTo(45 / 200, 12);
    // Behind the last point it stays at 0.6.
    expect(averageSuccess(curve, 500)).toBeCloseTo(240 / 500, 12);
  });

  it("has the same mean with further points on its lines", () => {
    const finer = [0, 20, 40, 100, 150, 200, 300, 390, 400].map((tokens) => ({
      tokens,
      success: readSuccess(curve, tokens),
    }));
    for (const budget of [30, 250, 400])
      expect(averageSuccess(finer, budget)).toBeCloseTo(averageSuccess(curve, budget), 12);
  });

  it("reaches a success at a point, or never", () => {
    expect([0, 0.2, 0.5, 0.8, 0.81].map((success) => findTokens(curve, success))).toEqual([0, 100, 300, 300, Infinity]);
  });

  it("has between those of other seeds a median, and the lowest and the highest one", () => {
    const seeds = [1, 0.5, 0].map((factor) =>
      curve.map(({ tokens, success }) => ({ tokens, success: success * factor })),
    );
    const near = (value: number) => expect.closeTo(value, 12);
    expect(readSpread(seeds, 400, 0.75)).toEqual({ median: near(0.4), lowest: near(0), highest: near(0.8) });
  });
});
