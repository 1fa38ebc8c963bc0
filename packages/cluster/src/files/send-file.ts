import { open } from "node:fs/promises";
import type { JobBus } from "../bus/job-bus.js";

/** Most bytes of a blob that holds a part of a file. */
const PART_BYTES = 64 * 2 ** 20;

export interface SendFileOptions {
  /** Bytes in front of each part, which distinguish its blob from blobs with equal bytes. */
  prefix?: Uint8Array;
  /** Called after each part with its SHA-256, and the number of the file's bytes in it. */
  onPart?: (sha: string, bytes: number) => void;
  signal?: AbortSignal;
}

/**
 * Puts a file into the bus, in blobs of at most 64 MiB; blobs that exist are not sent again.
 * @returns its size in bytes, and the blobs' SHA-256 in order.
 * @throws ClusterError of `blobs.put`; errors of reading the file; the signal's reason.
 */
export async function sendFile(
  { blobs }: Pick<JobBus, "blobs">,
  path: string,
  { prefix = new Uint8Array(), onPart, signal }: SendFileOptions = {},
): Promise<{ bytes: number; parts: string[] }> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const most = PART_BYTES - prefix.length;
    const parts: string[] = [];
    for (let start = 0; start < size; start += most) {
      signal?.throwIfAborted();
      const part = Buffer.alloc(prefix.length + Math.min(most, size - start));
      part.set(prefix);
      for (let at = prefix.length; at < part.length; ) {
        const { bytesRead } = await file.read(part, at, part.length - at, start + at - prefix.length);
        if (bytesRead === 0) throw new Error(`${path} became shorter while it was read`);
        at += bytesRead;
      }
      const sha = await blobs.put(part);
      parts.push(sha);
      onPart?.(sha, part.length - prefix.length);
    }
    return { bytes: size, parts };
  } finally {
    await file.close();
  }
}
