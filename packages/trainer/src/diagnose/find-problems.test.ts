import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseFilter } from "@cria/rollout";
import { describe, expect, it } from "vitest";
import { trainConfigSchema } from "../config/train-config.js";
import type { StepMetrics } from "../step-metrics.js";
import { findProblems } from "./find-problems.js";
import { rules } from "./rules.js";

const folder = join(import.meta.dirname, "..", "..", "fixtures", "runs");

/** What fixtures/runs/record-runs.mjs wrote: a list, or a value that never changes, by metric. */
interface RecordedRun {
  config: unknown;
  lines: number;
  columns: Record<string, (number | null)[] | number>;
}

function readRun(kind: "healthy" | "ailing", name: string): { config: unknown; history: StepMetrics[] } {
  const { config, lines, columns } = JSON.parse(
    readFileSync(join(folder, kind, `${name}.json`), "utf8"),
  ) as RecordedRun;
  const history = Array.from({ length: lines }, (_, i) =>
    Object.fromEntries(
      Object.entries(columns).flatMap(([name, column]) => {
        const value = typeof column === "number" ? column : column[i];
        return value === null || value === undefined ? [] : [[name, value]];
      }),
    ),
  );
  return { config, history };
}

const list = (kind: "healthy" | "ailing") =>
  readdirSync(join(folder, kind))
    .map((file) => file.replace(/\.json$/, ""))
    .sort();

describe("runs that learn", () => {
  it.each(list("healthy"))("nothing is said of %s at any step, nor of its end alone", (name) => {
    const { config, history } = readRun("healthy", name);
    expect(history.length).toBeGreaterThan(30);
    for (let length = 1; length <= history.length; length++)
      for (const hasTools of [true, false]) {
        const context = { hasTools, config, fewest: 3 };
        expect(findProblems(history.slice(0, length), context), `the first ${length}`).toEqual([]);
        expect(findProblems(history.slice(length - 1), context), `from ${length}`).toEqual([]);
      }
  });
});

for (const name of list("ailing")) {
  const { config, history } = readRun("ailing", name);
  const seen = new Map<string, number>();
  for (let length = 1; length <= history.length; length++)
    for (const f of findProblems(history.slice(0, length), { hasTools: true, config }))
      if (!seen.has(f.rule)) seen.set(f.rule, length);
  console.log(
    name,
    [...seen].map(([a, b]) => `${a}@${b}`).join(" "),
    "| END",
    findProblems(history, { hasTools: true, config, fewest: 3 })
      .map((f) => f.rule + ": " + f.sentence)
      .join("\n      "),
  );
}
