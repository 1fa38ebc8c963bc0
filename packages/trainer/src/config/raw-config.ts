// A config as it was read: nested mappings, addressed by dotted keys.

import { readFile } from "node:fs/promises";

/** A key that has no effect, with the reason. */
export interface SetAside {
  key: string;
  reason: string;
}

/** The value at a dotted key; undefined if there is none. */
export function readKey(raw: unknown, path: string): unknown {
  let node = raw;
  for (const part of path.split(".")) node = isMapping(node) && Object.hasOwn(node, part) ? node[part] : undefined;
  return node;
}

/** Sets a dotted key, creating the sections above it. */
export function writeKey(raw: Record<string, unknown>, path: string, value: unknown): void {
  const parts = path.split(".");
  const last = parts.pop()!;
  let node = raw;
  for (const part of parts) {
    if (!Object.hasOwn(node, part) || !isMapping(node[part])) define(node, part, {});
    node = node[part] as Record<string, unknown>;
  }
  define(node, last, value);
}

/** Defines an own property: plain assignment would reach Object.prototype through a key named __proto__. */
function define(node: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(node, key, { value, writable: true, enumerable: true, configurable: true });
}

/** Removes a dotted key from a raw config, and returns its value. */
export function removeKey(raw: Record<string, unknown>, path: string): { found: boolean; value?: unknown } {
  const parts = path.split(".");
  const last = parts.pop()!;
  let node: unknown = raw;
  for (const part of parts) node = isMapping(node) ? node[part] : undefined;
  if (!isMapping(node) || !Object.hasOwn(node, last)) return { found: false };
  const value = node[last];
  delete node[last];
  dropEmptySections(raw, parts);
  return { found: true, value };
}

/** Removes empty sections, which would be unknown keys if Cria has no section of that name. */
function dropEmptySections(raw: Record<string, unknown>, parts: readonly string[]): void {
  for (let depth = parts.length; depth > 0; depth--) {
    let node: unknown = raw;
    for (const part of parts.slice(0, depth - 1)) node = isMapping(node) ? node[part] : undefined;
    const last = parts[depth - 1]!;
    if (!isMapping(node) || !isMapping(node[last]) || Object.keys(node[last]).length > 0) return;
    delete node[last];
  }
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reads a JSON file; undefined if it is missing or damaged. */
export async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch {
    return undefined;
  }
}

/** Dotted keys of all values that are neither null nor empty. */
export function listLeaves(value: unknown, path: string): string[] {
  if (value === null || (Array.isArray(value) && value.length === 0)) return [];
  if (!isMapping(value)) return [path];
  return Object.entries(value).flatMap(([key, entry]) => listLeaves(entry, `${path}.${key}`));
}
