import { cpSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

/**
 * Copies a folder as a kill at this instant would leave it. This thread stands still meanwhile, but what it began to
 * write, rename or remove goes on in others: the copy is made anew until nothing changed while it was made.
 */
export function snapshotFolder(from: string, to: string): void {
  for (;;) {
    rmSync(to, { recursive: true, force: true });
    try {
      const before = list(from);
      cpSync(from, to, { recursive: true });
      if (list(from) === before) return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
}

function list(folder: string): string {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    const { size, mtimeMs, ino } = statSync(path);
    return [path, size, mtimeMs, ino];
  });
  return JSON.stringify(entries);
}
