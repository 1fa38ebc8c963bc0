import { realpath, stat } from "node:fs/promises";
import { basename } from "node:path";
import { hashFiles } from "@cria/core/internal";
import type { ModelFile } from "../jobs/run-description.js";
import { KnownHashes } from "./known-hashes.js";
import { listParts } from "./list-parts.js";
import { LongWork, type WorkOptions } from "./long-work.js";

export type ModelHash = Pick<ModelFile, "name" | "sha256" | "bytes">;

/**
 * Name, size and SHA-256 of a model's file; for a model in parts, of all parts concatenated. Hashes are remembered by
 * path, size and modification time.
 * @throws errors of reading a file; the signal's reason.
 */
export async function hashModel(path: string, options: WorkOptions = {}): Promise<ModelHash> {
  const files = await Promise.all(listParts(path).map(describeFile));
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const known = await KnownHashes.open();
  const key = JSON.stringify(files);
  let sha256 = known.get(key);
  if (sha256 === undefined) {
    const work = new LongWork(`finding the SHA-256 of ${basename(path)}`, bytes, options.report);
    const { signal } = options;
    sha256 = await hashFiles(
      files.map((file) => file.path),
      { signal, onRead: (read) => work.add(read) },
    );
    // The hash of a file that changed meanwhile is not remembered.
    const now = JSON.stringify(await Promise.all(listParts(path).map(describeFile)));
    if (now === key) await known.add(key, sha256);
  }
  return { name: basename(path), sha256, bytes };
}

interface KnownFile {
  path: string;
  size: number;
  changed: number;
}

async function describeFile(path: string): Promise<KnownFile> {
  const { size, mtimeMs } = await stat(path);
  return { path: await realpath(path), size, changed: mtimeMs };
}
