import { expect, it } from "vitest";
import { pickRows } from "./pick-rows.js";

it("picks rows in any order and as often as they are named", () => {
  expect(pickRows(Int32Array.of(1, 2, 3, 4, 5, 6), [2, 0, 2], 2)).toEqual(Int32Array.of(5, 6, 1, 2, 5, 6));
  expect(pickRows([0.5, 1.5, 2.5], Int32Array.of(1, 1))).toEqual(Float32Array.of(1.5, 1.5));
  expect(pickRows(Float32Array.of(1), [], 3)).toEqual(new Float32Array(0));
});
