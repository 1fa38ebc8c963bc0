import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";

export interface HashOptions {
  signal?: AbortSignal;
  /** Called with the number of bytes read since the last call. */
  onRead?(bytes: number): void;
}

/**
 * SHA-256, in hex, of the concatenated files. They are read in parts, so they may have any size.
 * @throws errors of reading a file; an AbortError.
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
 * @throws errors of reading it.
 */
export const hashFile = (path: string): Promise<string> => hashFiles([path]);
