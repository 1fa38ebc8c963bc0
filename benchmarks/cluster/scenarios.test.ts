import { describe, expect, it } from "vitest";
import { readResults } from "../pages/results.js";
import type { Report } from "../report.js";
import { type ClusterRow, roundPoint } from "./cluster-row.js";
import { drawEfficiency } from "./draw-efficiency.js";
import { inputMetrics, toInputs, toRows } from "./inputs.js";
import { formatSeconds, formatTable } from "./present.js";
import { scenarios, simulatePoint, titleOf } from "./scenarios.js";

const reports = [...readResults().values()].flat().filter(({ name }) => name === "cluster") as Report<ClusterRow>[];

describe("kept simulations", () => {
  it("are there", () => {
    expect(reports.length).toBeGreaterThan(0);
  });

  it.each(reports.map((report) => [report.machine.kind, report] as const))(
    "of %s are what the code gives for what was measured there",
    (_, { rows }) => {
      // Else: npm run bench -- cluster --only simulated --save
      const inputs = toInputs(rows);
      const simulated = rows.filter(({ scenario }) => scenario);
      expect(simulated.map((row) => row.case).sort()).toEqual(scenarios.map(titleOf).sort());
      // Every place and design once, with as few workers as take milliseconds.
      for (const { scenario, points } of simulated) {
        if (scenario!.model !== "0.5B" || scenario!.speed !== 1) continue;
        const kept = points![scenario!.place === "sites" ? 0 : 1]!;
        expect(roundPoint(simulatePoint(scenario!, kept.workers, inputs))).toEqual(kept);
      }
    },
  );
});

describe("measured inputs", () => {
  it("are read from rows as they were written to them", () => {
    const inputs = Object.fromEntries(Object.keys(inputMetrics).map((name, i) => [name, i + 1]));
    expect(toInputs(toRows(inputs))).toEqual(inputs);
  });

  it("must all be there", () => {
    expect(() => toInputs(toRows({ add: 1 }))).toThrow("not measured yet: measured: engine");
  });
});

describe("the page", () => {
  it("refuses a part that there is not", () => {
    expect(() => formatTable(reports[0]!, "nothing")).toThrow("no part nothing");
  });

  it("writes times as people read them", () => {
    expect([0, 0.0123, 3.4, 90, 600, 86_400].map(formatSeconds)).toEqual([
      "0",
      "12 ms",
      "3.40 s",
      "90.0 s",
      "10.0 min",
      "24.0 h",
    ]);
  });

  it("draws every number of workers within its panel", () => {
    const points = [1, 32, 1000].map((workers) => ({ workers, efficiency: 1 / workers }));
    const [, places] = /polyline points="([^"]+)"/.exec(
      drawEfficiency([{ title: "t", lines: [{ name: "n", points }] }], ["n"]),
    )!;
    expect(places!.split(" ")).toEqual(["0.0,0.0", "115.4,125.9", "230.0,129.9"]);
  });
});
