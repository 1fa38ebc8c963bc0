import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { expandBraces } from "../../testing/expand-braces.js";
import { readVerlDefaults } from "../../testing/verl-configs.js";
import { listKeys } from "../reference/list-keys.js";
import { trainConfigSchema } from "../train-config.js";
import { describeStreamedKeys } from "./streamed-training.js";
import { describeMovedKeys } from "./translate-values.js";
import { verlKeys } from "./verl-keys.js";

/** Keys of verl's asynchronous trainers. */
const isAsync = (key: string) => key.startsWith("trainer.v1.") || key.startsWith("async_training.");

/** Keys that have an effect, with at least some values. */
const effective = new Set(
  [
    ...listKeys(trainConfigSchema).map(({ key }) => key),
    ...Object.keys(describeMovedKeys()),
    ...Object.keys(describeStreamedKeys()),
  ].filter(isAsync),
);

/** The verdict of the tables of keys on a key: works, warned (without effect in some configs), refused with some values. */
function judge(key: string): string {
  const parts = key.split(".");
  const sections = parts.map((_, i) => parts.slice(0, parts.length - i).join("."));
  const entry = sections.map((section) => verlKeys[section]).find((found) => found !== undefined);
  return [
    ...(effective.has(key) ? ["works"] : []),
    ...(entry && ("nothing" in entry || "unread" in entry) ? ["warned"] : []),
    ...(entry && "only" in entry ? ["refused"] : []),
  ].join(", ");
}

/** Rows of the table in docs/verl.md: what it says of each key. */
function readTable(): Map<string, string> {
  const text = readFileSync(join(import.meta.dirname, "../../../../../docs/verl.md"), "utf8");
  const rows = text.split("\n").flatMap((line) => {
    const [, keys, here] = /^\| `([^`]+)` +\| ([^|]+?) +\|/.exec(line) ?? [];
    return keys === undefined ? [] : expandBraces(keys).map((key) => [key, here!] as const);
  });
  return new Map(rows.filter(([key]) => isAsync(key)));
}

const table = readTable();

it("docs/verl.md has a row for each key of verl's asynchronous trainers, and no other", () => {
  const known = [...new Set([...effective, ...Object.keys(verlKeys).filter(isAsync)])];
  const leaves = known.filter((key) => !known.some((other) => other.startsWith(`${key}.`)));
  expect([...table.keys()].sort()).toEqual(leaves.sort());
  // A row of a section stands for the keys below it.
  const missing = Object.keys(readVerlDefaults("v0.9")).filter(
    (key) => isAsync(key) && ![...table.keys()].some((row) => key === row || key.startsWith(`${row}.`)),
  );
  expect(missing).toEqual([]);
});

it("docs/verl.md says of each whether it works, is warned of, or is refused", () => {
  expect(Object.fromEntries(table)).toEqual(Object.fromEntries([...table.keys()].map((key) => [key, judge(key)])));
});
