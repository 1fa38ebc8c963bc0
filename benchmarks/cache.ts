import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";

/** Folder of generated models and built peers; `CRIA_BENCHMARK_CACHE` names another one. */
export const cacheFolder =
  process.env.CRIA_BENCHMARK_CACHE ?? join(import.meta.dirname, "..", "node_modules", ".cache", "cria-benchmarks");

/** Path of a cached file or folder; `make` writes it to the path that it gets, which is then renamed. */
export async function cached(name: string, make: (temporary: string) => void | Promise<void>): Promise<string> {
  const path = join(cacheFolder, name);
  if (existsSync(path)) return path;
  const temporary = `${path}.${process.pid}.tmp`;
  mkdirSync(dirname(path), { recursive: true });
  try {
    await make(temporary);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    // Another process may have made it meanwhile.
    if (!existsSync(path)) throw error;
  }
  return path;
}
