import { expect, it } from "vitest";
import type { Report } from "../report.js";
import { formatTable, type LearningRow } from "./present.js";

it("shows GRPO and each method of a task, with what was never reached", () => {
  const make = (title: string, metric: string, ours: number[], grpo: number[]) =>
    ({ case: title, metric, seeds: { ours, GRPO: grpo } }) as unknown as LearningRow;
  // A file has null for what is infinite.
  const never = null as unknown as number;
  const rows = [
    make("a: x", "tokens sampled until 0.5 of the held-out rows are solved", [900, 1100, 1000], [3000, never, 2000]),
    make("a: x", "success at the end", [1, 0.9, 0.8], [0.5, 0.25, 0.75]),
    make("b: y", "success at the end", [0, 0, 0], [0, 0, 0]),
  ];
  const lines = formatTable({ rows } as unknown as Report<LearningRow>, "a").split("\n");
  expect(lines.map((line) => line.split("|").map((cell) => cell.trim()))).toEqual([
    ["", "method", "tokens to 0.5", "to 0.9", "mean success on the way", "at the end", ""],
    expect.anything(),
    ["", "GRPO", "3.0k (2.0k to never)", "", "", "0.50 (0.25 to 0.75)", ""],
    ["", "x", "1.0k (0.9k to 1.1k)", "", "", "0.90 (0.80 to 1.00)", ""],
  ]);
  expect(formatTable({ rows } as unknown as Report<LearningRow>)).toContain("**b**");
});
