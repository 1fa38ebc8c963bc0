import type { RunEvent } from "cria";
import { expect, it } from "vitest";
import { LearningRecord } from "./record-learning.js";

const step = (tokens: number) => ({ type: "step", metrics: { "engine/decode_tokens": tokens } }) as unknown as RunEvent;
const validated = (success: number) => ({ type: "validated", success }) as RunEvent;

it("a point has the tokens sampled by then, and is due after so many, later after ever more", () => {
  const record = new LearningRecord({ every: 100, tokens: 750 });
  const events = [validated(0), step(60), step(50), validated(0.5), step(99), step(500), validated(0.9)];
  const seen = [...events, step(177), step(1), validated(1)].map((event) => {
    record.report(event);
    return [record.isPointDue, record.isOver];
  });
  expect(record.points).toEqual([
    { tokens: 0, success: 0 },
    { tokens: 110, success: 0.5 },
    { tokens: 709, success: 0.9 },
    { tokens: 887, success: 1 },
  ]);
  // 886 is less than 1.25 x 709.
  expect(seen.map(([isDue]) => isDue)).toEqual([
    ...[false, false, true, false, false, true, false],
    ...[false, true, false],
  ]);
  // Not before a point shows what was learned from the last tokens.
  expect(seen.map(([, isOver]) => isOver)).toEqual([...new Array(9).fill(false), true]);
});

it("counts conversations that were left out and turns of a teacher, and no validation", () => {
  let decoded = 1000;
  const record = new LearningRecord({ every: 1, tokens: 1, countDecoded: () => decoded });
  const report = (more: number, event: RunEvent) => {
    decoded += more;
    record.report(event);
  };
  report(700, validated(0));
  // 60 of 90 sampled tokens are in groups that a filter left out.
  report(90, step(30));
  report(700, validated(0));
  // The policy sampled 10 of 40 tokens, a teacher the others.
  report(10, step(40));
  report(700, validated(0));
  expect(record.points.map(({ tokens }) => tokens)).toEqual([0, 90, 130]);
});
