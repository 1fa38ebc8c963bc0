import type { GroupEntry, GroupPage, GroupSort } from "@cria/viewer/api";
import type { DumpIndex } from "./dump-index.js";
import { type IndexRow, toEntry } from "./index-row.js";
import { makePromptId } from "./prompt-id.js";
import { type SelectOptions, selectRows } from "./select-rows.js";

export interface PageOptions extends SelectOptions {
  sort: GroupSort;
  down: boolean;
  offset: number;
  /** Null: all. */
  limit: number | null;
}

export const groupSorts = ["order", "reward", "spread", "advantage", "length", "errors", "mismatch"] as const;
/** Most groups of a page, and conversations of all of them: a dump may have a single prompt. */
export const MOST_GROUPS = 200;
const MOST_ENTRIES = 5000;

/** Conversations of one prompt, and the keys for sorting groups. */
export interface Group {
  uid: string;
  rows: IndexRow[];
  keys: Record<GroupSort, number | null>;
}

const kept = new WeakMap<DumpIndex, { version: number; groups: Map<string, Group> }>();

/** The groups of the indexed part of a dump, in the order of the file. */
export function groupRows(index: DumpIndex): Map<string, Group> {
  const known = kept.get(index);
  if (known?.version === index.version) return known.groups;
  const byUid = new Map<string, IndexRow[]>();
  for (const row of index.rows) {
    const rows = byUid.get(row.uid);
    if (rows) rows.push(row);
    else byUid.set(row.uid, [row]);
  }
  let order = 0;
  const groups = new Map([...byUid].map(([uid, rows]) => [uid, { uid, rows, keys: measure(rows, order++) }]));
  kept.set(index, { version: index.version, groups });
  return groups;
}

/** A page of groups. @throws ConfigError for a wrong filter; the signal's reason. */
export async function listGroups(
  index: DumpIndex,
  { sort, down, offset, limit, ...wanted }: PageOptions,
): Promise<GroupPage> {
  const lines = await selectRows(index, wanted);
  const all = [...groupRows(index).values()];
  const matching = lines === null ? all : all.filter(({ rows }) => rows.some(({ line }) => lines.has(line)));
  const ordered = sort === "order" && !down ? matching : matching.sort((a, b) => compare(a, b, sort, down));
  const page = limit === null ? ordered : takeEntries(ordered.slice(offset, offset + limit));
  return {
    groups: page.map(toGroupEntry),
    selected: lines && page.flatMap(({ rows }) => rows.flatMap(({ line }) => (lines.has(line) ? line : []))),
    matchedGroups: matching.length,
    matched: lines?.size ?? index.rows.length,
    total: index.rows.length,
    indexed: index.isBusy ? Math.min(index.indexed, index.size) : index.size,
    size: index.size,
  };
}

/** The first groups with at most `MOST_ENTRIES` conversations together; at least one. */
function takeEntries(groups: readonly Group[]): Group[] {
  let entries = 0;
  const end = groups.findIndex(({ rows }, i) => {
    entries += rows.length;
    return entries > MOST_ENTRIES && i > 0;
  });
  return groups.slice(0, end < 0 ? groups.length : end);
}

export function toGroupEntry({ uid, rows, keys }: Group): GroupEntry {
  const [first] = rows;
  return {
    uid,
    prompt: makePromptId(first!),
    place: first!.place,
    dataSource: first!.dataSource,
    title: first!.title,
    reward: keys.reward,
    spread: keys.spread,
    conversations: rows.slice(0, MOST_ENTRIES).map(toEntry),
  };
}

function measure(rows: readonly IndexRow[], order: number): Group["keys"] {
  const rewards = rows.flatMap(({ reward }) => reward ?? []);
  const reward = rewards.length > 0 ? mean(rewards) : null;
  return {
    order,
    reward,
    spread: reward === null ? null : Math.sqrt(mean(rewards.map((value) => (value - reward) ** 2))),
    advantage: largest(rows.map(({ advantage }) => advantage && Math.abs(advantage))),
    length: mean(rows.map(({ tokens, promptLength }) => tokens - promptLength)),
    errors: rows.reduce((sum, { toolErrors }) => sum + toolErrors, 0),
    mismatch: largest(rows.map(({ mismatch }) => mismatch)),
  };
}

/** Missing values come last in both directions; equal ones stay in the order of the file. */
function compare(a: Group, b: Group, sort: GroupSort, down: boolean): number {
  const [x, y] = [a.keys[sort], b.keys[sort]];
  if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
  return down ? y - x : x - y;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function largest(values: readonly (number | null)[]): number | null {
  return values.reduce((most, value) => (value !== null && (most === null || value > most) ? value : most), null);
}
