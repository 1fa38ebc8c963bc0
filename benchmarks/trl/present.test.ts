import { expect, it } from "vitest";
import { makeReport } from "../report.js";
import { describeTrl, formatTable } from "./present.js";

const machine = {} as Parameters<typeof makeReport>[2];
const make = (metric: string, ours: number, trl: number) => ({
  ...{ case: "3 steps", metric, ours, peers: { TRL: trl }, target: null, met: null },
});
const report = makeReport(
  "trl",
  {
    rows: [
      make("seconds a step, median, our base in F32", 10, 70),
      make("peak memory, MiB, our base in F32", 1000, 4000),
      make("seconds a step, median, our base in Q8_0", 5, 70),
      make("peak memory, MiB, our base in Q8_0", 500, 4000),
    ],
  },
  machine,
  "abc",
);

it("shows each quantity once, ours over each base beside the peer's", () => {
  const lines = formatTable(report).split("\n");
  expect(lines.slice(2).map((line) => line.split("|").map((cell) => cell.trim()))).toEqual([
    ["", "", "Cria, F32", "Cria, Q8_0", "TRL", ""],
    expect.anything(),
    ["", "seconds a step", "10.0", "5.00", "70.0 (7.00, 14.0)", ""],
    ["", "peak memory, MiB", "1000", "500", "4000 (4.00, 8.00)", ""],
  ]);
});

it("says how much faster and smaller a step is", () => {
  const [first, second] = describeTrl(report.rows);
  expect(first).toContain("7.00 times");
  expect(first).toContain("0.250");
  expect(second).toContain("14.0 times");
});
