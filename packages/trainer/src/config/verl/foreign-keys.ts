import { isMapping, listLeaves, readKey, removeKey, type SetAside, writeKey } from "../raw-config.js";
import { type VerlKey, verlKeys } from "./verl-keys.js";

type Kind = VerlKey extends infer Entry ? (Entry extends VerlKey ? keyof Entry : never) : never;
type EntryOf<Name extends Kind> = Extract<VerlKey, Record<Name, unknown>>;

/** Keys whose entry has this kind, in the order of the table. */
function listEntries<Name extends Kind>(kind: Name): [key: string, entry: EntryOf<Name>][] {
  return Object.entries(verlKeys).filter((row): row is [string, EntryOf<Name>] => kind in row[1]);
}

/** Entry of a key; undefined if the table lacks it. */
export function findVerlKey(key: string): VerlKey | undefined {
  return Object.hasOwn(verlKeys, key) ? verlKeys[key] : undefined;
}

/** Keys without effect. */
export function listIgnoredKeys(): string[] {
  return listEntries("nothing").map(([key]) => key);
}

/** Other names of keys. */
export function listRenamedKeys(): string[] {
  return listEntries("alias").map(([key]) => key);
}

/** Cria's key for another name; undefined if it is none. */
export function findRenamed(key: string): string | undefined {
  const entry = findVerlKey(key);
  return entry && "alias" in entry ? entry.alias : undefined;
}

/** Other names of a key. */
export function listOtherNames(key: string): string[] {
  return listRenamedKeys().filter((name) => findRenamed(name) === key);
}

/** Hydra's name of a Python class, in any section. */
export const PYTHON_TARGET = "_target_";
export const pythonReason = (verlKeys.hydra as EntryOf<"nothing">).nothing;

/** Replaces other names by Cria's in a raw config; returns those without effect because Cria's own name is set, too. */
export function renameKeys(raw: Record<string, unknown>): SetAside[] {
  const overruled: SetAside[] = [];
  for (const [from, { alias: to }] of listEntries("alias")) {
    const { found, value } = removeKey(raw, from);
    if (!found || value === null) continue;
    const present = readKey(raw, to);
    if (present === undefined || present === null) writeKey(raw, to, value);
    else if (JSON.stringify(present) !== JSON.stringify(value))
      overruled.push({ key: from, reason: `${to} says it: ${JSON.stringify(present)}` });
  }
  return overruled;
}

/** Removes keys without effect from a raw config; returns them with their reasons. */
export function dropIgnoredKeys(raw: Record<string, unknown>): SetAside[] {
  return listEntries("nothing")
    .filter(([key]) => removeKey(raw, key).found)
    .map(([key, { nothing }]) => ({ key, reason: nothing }));
}

/** Removes the names of Python classes that Hydra puts into sections. */
export function dropPythonTargets(node: unknown, path: readonly string[] = []): SetAside[] {
  if (!isMapping(node)) return [];
  const found = Object.entries(node).flatMap(([key, value]) => dropPythonTargets(value, [...path, key]));
  if (!Object.hasOwn(node, PYTHON_TARGET)) return found;
  delete node[PYTHON_TARGET];
  return [{ key: [...path, PYTHON_TARGET].join("."), reason: pythonReason }, ...found];
}

/** Removes sections that nothing reads; returns all of their keys that have a value. */
export function dropUnreadSections(raw: Record<string, unknown>): SetAside[] {
  return listEntries("unread").flatMap(([key, { unread }]) => {
    const { found, value } = removeKey(raw, key);
    return found ? listLeaves(value, key).map((leaf) => ({ key: leaf, reason: unread })) : [];
  });
}

/** A key whose value asks for a missing feature. */
export interface Refusal {
  key: string;
  received: unknown;
  accepted: readonly unknown[];
  remedy?: string;
}

/** Removes keys with a fixed value from a raw config; returns those whose value asks for a missing feature. */
export function removePendingKeys(raw: Record<string, unknown>): Refusal[] {
  return listEntries("only").flatMap(([key, { only, remedy }]) => {
    const { found, value } = removeKey(raw, key);
    return found && !only.includes(value) ? [{ key, received: value, accepted: only, remedy }] : [];
  });
}
