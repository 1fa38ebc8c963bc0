import { expect, it } from "vitest";
import type { Row } from "../row.js";
import { judgeRows } from "./judge.js";

const row = (ours: number, peers: Record<string, number>, rest: Partial<Row> = {}): Row => ({
  ...{ case: "one", metric: "tokens", ours, peers, target: null, met: null },
  ...rest,
});
const kept = [row(200, { peer: 100 })];

it.each<[string, Row, boolean | null]>([
  ["as fast, on a slower machine", row(20, { peer: 10 }), true],
  ["just above the bound", row(181, { peer: 100 }), true],
  ["just below it", row(179, { peer: 100 }), false],
  ["faster itself, beside a peer that gained more", row(300, { peer: 200 }), false],
  ["another case", row(1, { peer: 100 }, { case: "two" }), null],
  ["another metric", row(1, { peer: 100 }, { metric: "bytes" }), null],
  ["without its peer", row(1, {}), null],
  ["a crippled peer", row(1, { peer: 100 }, { crippled: { peer: "slow BLAS" } }), null],
])("a row is judged by the kept ratio: %s", (_, measured, met) => {
  expect(judgeRows([measured], kept).map((judged) => judged.met)).toEqual([met]);
});

it("nothing is judged where nothing is kept, or by a row whose own peer was crippled", () => {
  expect(judgeRows([row(1, { peer: 100 })], [])[0]!.met).toBeNull();
  expect(
    judgeRows([row(1, { peer: 100 })], [row(200, { peer: 1 }, { crippled: { peer: "slow" } })])[0]!.met,
  ).toBeNull();
});
