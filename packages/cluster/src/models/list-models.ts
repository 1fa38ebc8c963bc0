import { type Dirent, promises as fs } from "node:fs";
import { join } from "node:path";
import { listParts } from "./list-parts.js";

/** Bounds of the search for models. */
const MOST_DEPTH = 6;
const MOST_ENTRIES = 50_000;
const LEFT_OUT = new Set(["node_modules", ".git"]);

/** GGUF files of this size below folders, in the order of their names. Unreadable folders are left out. */
export async function* listModels(folders: readonly string[], bytes: number): AsyncGenerator<string> {
  let left = MOST_ENTRIES;
  const visit = async function* (folder: string, depth: number): AsyncGenerator<string> {
    const entries = await fs.readdir(folder, { withFileTypes: true }).catch((): Dirent[] => []);
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (left-- <= 0) return;
      const path = join(folder, entry.name);
      // The hub's cache consists of links to files. Links to folders may form a circle.
      if (/\.gguf$/i.test(entry.name) && !entry.isDirectory()) {
        if ((await sizeOfModel(path)) === bytes) yield path;
      } else if (entry.isDirectory() && depth < MOST_DEPTH && !LEFT_OUT.has(entry.name)) yield* visit(path, depth + 1);
    }
  };
  for (const folder of folders) yield* visit(folder, 0);
}

async function sizeOfModel(path: string): Promise<number | undefined> {
  const sizes = await Promise.all(listParts(path).map((part) => fs.stat(part).catch(() => undefined)));
  if (sizes.some((found) => !found?.isFile())) return undefined;
  return sizes.reduce((sum, found) => sum + found!.size, 0);
}
