import { describe, expect, it } from "vitest";
import { readResults } from "../pages/results.js";
import { inputMetrics, toInputs, toRows } from "./inputs.js";
import { formatTable } from "./present.js";

describe("measured inputs", () => {
  it("are read from the rows to which they were written", () => {
    const inputs = Object.fromEntries(Object.keys(inputMetrics).map((name, i) => [name, i + 1]));
    expect(toInputs(toRows(inputs))).toEqual(inputs);
  });

  it("must all be there", () => {
    expect(() => toInputs(toRows({ add: 1 }))).toThrow("engine");
  });
});

it("the page refuses an unknown part", () => {
  const report = [...readResults().values()].flat().find(({ name }) => name === "cluster")!;
  expect(() => formatTable(report, "nothing")).toThrow("nothing");
});
