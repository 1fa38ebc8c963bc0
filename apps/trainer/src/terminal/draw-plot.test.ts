import { expect, it } from "vitest";
import { drawPlot } from "./draw-plot.js";

const size = { width: 4, height: 2 };

it("a rising curve goes from the lower left to the upper right, without gaps", () => {
  expect(drawPlot([0, 1], size)).toEqual(["⠀⠀⡠⠊", "⡠⠊⠀⠀"]);
});

it("steep pieces are lines; values beyond the range lie at its edge", () => {
  expect(drawPlot([0, 0, 0, 0, 9, 9, 9, 9], { ...size, range: [0, 1] })).toEqual(["⠀⠀⡏⠉", "⣀⣀⠇⠀"]);
});

it("many values are averaged into their columns; one is a level line; none are empty lines", () => {
  const many = Array.from({ length: 800 }, (_, i) => i);
  expect(drawPlot(many, size)).toEqual(drawPlot([0, 1], size));
  expect(drawPlot([5], { width: 2, height: 1 })).toEqual(["⠤⠤"]);
  expect(drawPlot([], size)).toEqual(["⠀⠀⠀⠀", "⠀⠀⠀⠀"]);
  expect(drawPlot([Number.NaN], size)).toEqual(["⠀⠀⠀⠀", "⠀⠀⠀⠀"]);
});
