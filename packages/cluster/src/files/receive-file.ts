import { open } from "node:fs/promises";
import { guardWrite } from "@cria/core";
import type { JobBus } from "../bus/job-bus.js";

export interface ReceiveFileOptions {
  /** Bytes that stand before each part (`SendFileOptions.prefix`). Default: 0. */
  prefixBytes?: number;
  /** With the bytes of each part, before they are written. */
  onPart?: (part: Uint8Array) => void;
  signal?: AbortSignal;
}

/**
 * Writes and syncs a new file of what `sendFile` put into the bus.
 * @param bytes the size that was promised: what goes beyond it is not written.
 * @returns bytes that the parts have, up to the one that went beyond.
 * @throws ClusterError of `blobs.get`; DataError when the file cannot be written; the signal's reason.
 */
export async function receiveFile(
  { blobs }: Pick<JobBus, "blobs">,
  { bytes, parts }: { bytes: number; parts: readonly string[] },
  path: string,
  { prefixBytes = 0, onPart, signal }: ReceiveFileOptions = {},
): Promise<number> {
  const file = await guardWrite(path, () => open(path, "wx"));
  try {
    let size = 0;
    for (const sha of parts) {
      signal?.throwIfAborted();
      const part = (await blobs.get(sha)).subarray(prefixBytes);
      size += part.byteLength;
      if (size > bytes) break;
      onPart?.(part);
      await guardWrite(path, () => file.writeFile(part));
    }
    await guardWrite(path, () => file.sync());
    return size;
  } finally {
    await file.close();
  }
}
