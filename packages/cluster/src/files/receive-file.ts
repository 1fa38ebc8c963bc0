import { open } from "node:fs/promises";
import { guardWrite } from "@cria/core/internal";
import type { JobBus } from "../bus/job-bus.js";

export interface ReceiveFileOptions {
  /** Bytes in front of each part (`SendFileOptions.prefix`). Default: 0. */
  prefixBytes?: number;
  /** Called with the bytes of each part, before they are written. */
  onPart?: (part: Uint8Array) => void;
  signal?: AbortSignal;
}

/**
 * Writes and syncs a new file from the bus, which `sendFile` put there.
 * @param bytes the promised size; bytes beyond it are not written.
 * @returns the size of the parts, up to the first one beyond the promised size.
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
