import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";

export interface HashOptions {
  signal?: AbortSignal;
  /** Bytes that were read since it was called last. */
  onRead?(bytes: number): void;
}

/**
 * SHA-256, in hex, of files one behind the other. They are read in parts: their size does not matter.
 * @throws what reading a file throws; an AbortError.
 */
export async function hashFiles(paths: readonly string[], { signal, onRead }: HashOptions = {}): Promise<string> {
  const hash = createHash("sha256");
  for (const path of paths) {
    for await (const part of createReadStream(path, { highWaterMark: 1 << 20, signal })) {
      hash.update(part as Buffer);
      onRead?.((part as Buffer).length);
    }
  }
  return hash.digest("hex");
}

/**
 * SHA-256 of one file, in hex.
 * @throws what reading it throws.
 */
export const hashFile = (path: string): Promise<string> => hashFiles([path]);
