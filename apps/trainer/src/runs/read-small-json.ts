import { readFile, stat } from "node:fs/promises";

/** Bytes of the largest file that is read whole: a config is far below it. */
const LARGEST = 16 << 20;

/** A JSON file of a run; undefined if it is missing or unreadable. */
export async function readSmallJson(path: string): Promise<unknown> {
  try {
    if ((await stat(path)).size > LARGEST) return undefined;
    return JSON.parse(await readFile(path, "utf8"));
  } catch {
    return undefined;
  }
}

/** The same as an object; null for everything else. */
export async function readSmallObject(path: string): Promise<Record<string, unknown> | null> {
  const value = await readSmallJson(path);
  return isObject(value) ? value : null;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
