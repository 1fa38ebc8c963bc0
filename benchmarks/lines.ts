import { readFileSync, writeFileSync } from "node:fs";

/** Writes a JSONL file. */
export const writeLines = (path: string, rows: readonly object[]): void =>
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));

/** The rows of a JSONL file. */
export const readLines = <T>(path: string): T[] =>
  readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as T);
