import { checkBlobSize, damagedBlob, missingBlob } from "../bus/blob-errors.js";
import type { Blobs } from "../bus/job-bus.js";
import { hashBytes } from "../bus/job-record.js";

/** Blobs in memory; beyond `maxBytes` the oldest are dropped. */
export class LocalBlobs implements Blobs {
  readonly entries = new Map<string, Uint8Array>();
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  async put(bytes: Uint8Array): Promise<string> {
    const sha = hashBytes(bytes);
    checkBlobSize(sha, bytes.length, this.#maxBytes);
    await this.delete(sha);
    this.entries.set(sha, bytes.slice());
    this.#bytes += bytes.length;
    for (const oldest of this.entries.keys()) {
      if (this.#bytes <= this.#maxBytes) break;
      await this.delete(oldest);
    }
    return sha;
  }

  async get(sha: string): Promise<Uint8Array> {
    const bytes = this.entries.get(sha);
    if (!bytes) throw missingBlob(sha);
    const found = hashBytes(bytes);
    if (found !== sha) throw damagedBlob(sha, `SHA-256 ${found}`);
    return bytes;
  }

  async has(sha: string): Promise<boolean> {
    return this.entries.has(sha);
  }

  async delete(sha: string): Promise<void> {
    this.#bytes -= this.entries.get(sha)?.length ?? 0;
    this.entries.delete(sha);
  }
}
