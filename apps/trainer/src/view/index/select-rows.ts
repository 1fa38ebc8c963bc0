import { contentText } from "@cria/core";
import { type DumpLine, type Filter, parseFilter } from "@cria/records";
import { type FilterValue, parseDumpLine, parseFilterOf } from "@cria/records/internal";
import type { DumpIndex } from "./dump-index.js";
import { findReader, type IndexRow } from "./index-row.js";
import { scanLines } from "./scan-lines.js";

export interface SelectOptions {
  /** In the language of `cria show --filter`; empty: all. */
  filter: string;
  /** A text in the conversation, case-insensitive; empty: all. */
  search: string;
  /** Ends the reading when its result is no longer needed. */
  signal?: AbortSignal;
}

/**
 * Numbers of the selected lines; null: all. Reads the lines themselves if the index does not suffice.
 * @throws ConfigError for a wrong filter; the signal's reason; errors of the file system.
 */
export async function selectRows(
  index: DumpIndex,
  { filter, search, signal }: SelectOptions,
): Promise<Set<number> | null> {
  const byIndex = filter.trim() === "" ? null : readByIndex(filter);
  const byLine = filter.trim() === "" || byIndex ? null : parseFilter(filter, "filter");
  const text = search.trim().toLowerCase();
  if (!byIndex && !byLine && text === "") return null;
  const rows = byIndex ? index.rows.filter(byIndex) : index.rows;
  if (!byLine && text === "") return new Set(rows.map(({ line }) => line));
  return readLines(index, rows, { byLine, text, signal });
}

/** The filter on rows of the index; null when it names a field that they lack. */
function readByIndex(filter: string): ((row: IndexRow) => boolean) | null {
  let isEnough = true;
  const test = parseFilterOf<IndexRow>(filter, (name) => {
    const read = findReader(name);
    isEnough &&= read !== undefined;
    return read ?? ((): FilterValue => null);
  });
  return isEnough ? test : null;
}

async function readLines(
  index: DumpIndex,
  rows: readonly IndexRow[],
  { byLine, text, signal }: { byLine: Filter | null; text: string; signal?: AbortSignal },
): Promise<Set<number>> {
  const wanted = new Map(rows.map((row) => [row.at, row]));
  const found = new Set<number>();
  // The text in JSON's form: if it is not in the line, it is not in its messages.
  const escaped = JSON.stringify(text).slice(1, -1);
  if (wanted.size === 0) return found;
  for await (const { at, bytes } of scanLines(index.file, 0, signal)) {
    const row = wanted.get(at);
    if (!row || bytes === null) continue;
    const json = bytes.toString("utf8");
    if (text !== "" && !json.toLowerCase().includes(escaped)) continue;
    if (isWanted(json, byLine, text)) found.add(row.line);
  }
  return found;
}

/** True if a line is selected; damaged lines and other data are not. */
function isWanted(json: string, filter: Filter | null, text: string): boolean {
  try {
    const dump = parseDumpLine(JSON.parse(json), "");
    return (!filter || filter(dump)) && (text === "" || contains(dump, text));
  } catch {
    return false;
  }
}

function contains({ messages, error }: DumpLine, text: string): boolean {
  const calls = messages.map(({ tool_calls }) => JSON.stringify(tool_calls ?? ""));
  const texts = [error ?? "", ...messages.map(({ content }) => contentText(content)), ...calls];
  return texts.some((each) => each.toLowerCase().includes(text));
}
