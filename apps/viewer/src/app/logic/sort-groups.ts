import type { ConversationEntry, GroupEntry, GroupSort } from "../../api/index.js";

/** Sorts groups like the server: missing values come last, equal ones keep their order. */
export function sortGroups(groups: readonly GroupEntry[], sort: GroupSort, down: boolean): GroupEntry[] {
  const keyed = groups.map((group, order) => ({ group, key: sort === "order" ? order : measure(group, sort) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return a.key === b.key ? 0 : a.key === null ? 1 : -1;
    return down ? b.key - a.key : a.key - b.key;
  });
  return keyed.map(({ group }) => group);
}

function measure(group: GroupEntry, sort: Exclude<GroupSort, "order">): number | null {
  const entries = group.conversations;
  if (sort === "reward" || sort === "spread") return group[sort];
  if (sort === "advantage") return largest(entries.map(({ advantage }) => advantage && Math.abs(advantage)));
  if (sort === "mismatch") return largest(entries.map(({ mismatch }) => mismatch));
  if (sort === "errors") return sum(entries, ({ toolErrors }) => toolErrors);
  return sum(entries, ({ tokens }) => tokens) / Math.max(1, entries.length);
}

function sum(entries: readonly ConversationEntry[], read: (entry: ConversationEntry) => number): number {
  return entries.reduce((all, entry) => all + read(entry), 0);
}

function largest(values: readonly (number | null)[]): number | null {
  return values.reduce((most, value) => (value !== null && (most === null || value > most) ? value : most), null);
}
