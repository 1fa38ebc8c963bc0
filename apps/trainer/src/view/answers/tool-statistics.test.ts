import type { DumpLine } from "@cria/records";
import { getToolFormat } from "@cria/tools";
import { expect, it } from "vitest";
import { ToolStatistics } from "./tool-statistics.js";

/** A conversation with one call and its answer. */
function makeLine(expression: string): DumpLine {
  const call = `<tool_call>{"name": "calculator", "arguments": ${JSON.stringify({ expression })}}</tool_call>`;
  const line: Partial<DumpLine> = {
    messages: [
      { role: "user", content: "?" },
      { role: "assistant", content: call },
      { role: "tool", content: "1" },
    ],
    prompt_messages: 1,
    turns: [
      { role: "assistant", start: 1, end: 2 },
      { role: "tool", start: 2, end: 3, failures: [null] },
    ],
    tool_schemas: [],
    metrics: {},
  };
  return line as DumpLine;
}

it("an argument with too many values to count apart is missing in no call", () => {
  const all = new ToolStatistics(getToolFormat("hermes").parse);
  for (const part of [0, 1]) {
    const some = new ToolStatistics(getToolFormat("hermes").parse);
    for (let i = 0; i < 1500; i++) some.add(makeLine(`${part}+${i}`));
    for (let i = 0; i < 10; i++) some.add(makeLine("often"));
    all.merge(some);
  }
  const [
    {
      calls,
      arguments: [expression],
    } = { calls: 0, arguments: [] },
  ] = all.describe().tools;
  expect(calls).toBe(3020);
  expect(expression).toMatchObject({ name: "expression", missing: 0 });
  const { bins } = expression!;
  expect(bins[0]).toEqual({ label: "often", count: 20 });
  expect(bins.at(-1)!.label).toBe("1989 and more others");
  expect(bins.reduce((sum, { count }) => sum + count, 0)).toBe(3020);
});
