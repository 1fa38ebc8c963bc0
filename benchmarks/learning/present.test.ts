import { describe, expect, it } from "vitest";
import type { Report } from "../report.js";
import { drawFigures, formatTable, type LearningRow, packCurves } from "./present.js";

const make = (title: string, metric: string, ours: number[], grpo: number[], more: Partial<LearningRow> = {}) =>
  ({ case: title, metric, seeds: { ours, GRPO: grpo }, ...more }) as unknown as LearningRow;
const report = (rows: LearningRow[]) => ({ rows }) as unknown as Report<LearningRow>;
// A file has null for what is infinite.
const never = null as unknown as number;

const readCells = (table: string) => table.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));

describe("a table", () => {
  const solved = "tokens sampled until 0.5 of the held-out rows are solved";
  const mean = "mean success by sampled tokens";

  it("has a line for GRPO and for each method, with what was never reached", () => {
    const rows = [
      make("a: GRPO", solved, [3000, never, 2000], [3000, never, 2000]),
      make("a: x", solved, [900, 1100, 1000], [3000, never, 2000]),
      make("a: x", mean, [0.5, 0.25, 0.75], [0, 0.1, 0.2]),
      make("a: x", "success at the end", [1, 0.9, 0.8], [0.5, 0.25, 0.75]),
      make("b: y", "success at the end", [0, 0, 0], [0, 0, 0]),
    ];
    expect(readCells(formatTable(report(rows), "a"))).toEqual([
      ["", "method", "tokens to 0.5", "mean success by token", "at the end", ""],
      expect.anything(),
      ["", "GRPO", "3.0k (2.0k to never)", "0.10 (0.00 to 0.20)", "0.50 (0.25 to 0.75)", ""],
      ["", "x", "1.0k (0.9k to 1.1k)", "0.50 (0.25 to 0.75)", "0.90 (0.80 to 1.00)", ""],
    ]);
    expect(formatTable(report(rows))).toContain("**b**");
  });

  it("of a result without curves has no mean by token, and no figure", () => {
    const rows = [make("a: x", "mean success along the way", [1], [1]), make("a: x", "success at the end", [1], [1])];
    expect(readCells(formatTable(report(rows), "a"))[0]).toEqual(["", "method", "at the end", ""]);
    expect(drawFigures(report(rows))).toEqual({});
  });

  it("shows the figure of its task", () => {
    const kept = { curves: packCurves([[{ tokens: 0, success: 0.5 }]]), budget: 1000 };
    const rows = ["One, two: GRPO", "One, two: x", "b: GRPO"].map((title) => make(title, mean, [0.5], [0.5], kept));
    expect(formatTable(report(rows), "One, two")).toMatch(/\n\n!\[[^\]]+\]\(learning-one-two\.svg\)$/);
    expect(Object.keys(drawFigures(report(rows)))).toEqual(["learning-one-two", "learning-b"]);
  });
});

describe("a figure", () => {
  const run = (...success: number[]) => success.map((value, i) => ({ tokens: 500 * i, success: value }));
  const row = (name: string, ...runs: ReturnType<typeof run>[]) =>
    make(`a: ${name}`, "mean success by sampled tokens", [], [], { curves: packCurves(runs), budget: 1000 });
  const rows = [row("GRPO", run(0, 0, 0)), row("x", run(0, 0.5, 1), run(0, 0, 0.5), run(0, 1, 1)), row("y", run(1, 1))];
  const svg = drawFigures(report(rows))["learning-a"]!;

  /** Places of a panel's second curve, which is the method's, as [tokens, success]. */
  function readShape(panel: number, tag: "polyline" | "polygon") {
    const [, ...panels] = svg.split("<g transform");
    const [, places] = [...panels[panel]!.matchAll(new RegExp(`<${tag} points="([^"]+)"`, "g"))][1]!;
    return places!.split(" ").map((place) => {
      const [x, y] = place.split(",").map(Number);
      return [x! * 4, 1 - y! / 170].map((value) => Number(value.toFixed(2)));
    });
  }

  it("has a panel for each method, with the median of its seeds", () => {
    expect([...svg.matchAll(/font-size="11">([^<]+)<\/text>/g)].map(([, title]) => title)).toEqual(["x", "y"]);
    const line = readShape(0, "polyline");
    const success = new Map(line.map(([tokens, value]) => [tokens, value]));
    expect([0, 250, 500, 750, 1000].map((tokens) => success.get(tokens))).toEqual([0, 0.25, 0.5, 0.75, 1]);
    expect(readShape(1, "polyline").every(([, value]) => value === 1)).toBe(true);
  });

  it("has a band from the lowest to the highest seed", () => {
    const band = readShape(0, "polygon");
    const at = (tokens: number) => band.filter(([x]) => x === tokens).map(([, value]) => value);
    expect([at(500), at(750), at(1000)]).toEqual([
      [1, 0],
      [1, 0.25],
      [1, 0.5],
    ]);
  });
});
