import type { JetStreamManager } from "@nats-io/jetstream";
import type { ObjectInfo, ObjectStore } from "@nats-io/obj";
import { checkBlobSize, damagedBlob, missingBlob } from "../bus/blob-errors.js";
import type { Blobs } from "../bus/job-bus.js";
import { hashBytes } from "../bus/job-record.js";

/** Longest wait for a blob: this, and a second for each of so many bytes. */
const GET_MS = 60_000;
const BYTES_PER_SECOND = 500_000;

/** Blobs in an object store, named by their SHA-256. */
export class NatsBlobs implements Blobs {
  readonly #store: ObjectStore;
  readonly #manager: JetStreamManager;
  readonly #bucket: string;
  readonly #most: number;

  constructor(store: ObjectStore, manager: JetStreamManager, bucket: string, most: number) {
    this.#store = store;
    this.#manager = manager;
    this.#bucket = bucket;
    this.#most = most;
  }

  async put(bytes: Uint8Array): Promise<string> {
    const sha = hashBytes(bytes);
    checkBlobSize(sha, bytes.length, this.#most);
    const there = await this.#find(sha);
    const digest = `SHA-256=${Buffer.from(sha, "hex").toString("base64url")}`;
    if (there?.size === bytes.length && there.digest.replace(/=+$/, "") === digest) return sha;
    await this.#store.putBlob({ name: sha }, bytes);
    return sha;
  }

  async get(sha: string): Promise<Uint8Array> {
    const info = await this.#find(sha);
    if (!info) throw missingBlob(sha);
    checkBlobSize(sha, info.size, this.#most);
    const bytes = await this.#read(sha, info.size);
    const found = hashBytes(bytes);
    if (found !== sha) throw damagedBlob(sha, `SHA-256 ${found}`);
    return bytes;
  }

  async has(sha: string): Promise<boolean> {
    return (await this.#find(sha)) !== undefined;
  }

  async delete(sha: string): Promise<void> {
    if (await this.has(sha)) await this.#store.delete(sha);
  }

  /** A blob of which nothing was dropped. */
  async #find(sha: string): Promise<ObjectInfo | undefined> {
    const info = await this.#store.info(sha);
    if (!info || info.deleted) return undefined;
    const subject = `$O.${this.#bucket}.C.${info.nuid}`;
    const { state } = await this.#manager.streams.info(`OBJ_${this.#bucket}`, { subjects_filter: subject });
    return (state.subjects?.[subject] ?? 0) === info.chunks ? info : undefined;
  }

  /** Reads no more than was announced, whatever is sent. */
  async #read(sha: string, size: number): Promise<Uint8Array> {
    const object = await this.#store.get(sha);
    if (!object) throw missingBlob(sha);
    object.error.catch(() => {});
    const bytes = new Uint8Array(size);
    let length = 0;
    const limit = AbortSignal.timeout(GET_MS + (1000 * size) / BYTES_PER_SECOND);
    const late = new Promise<never>((_, reject) =>
      limit.addEventListener("abort", () => reject(new Error("it did not arrive in time"))),
    );
    late.catch(() => {});
    const reader = object.data.getReader();
    try {
      for (;;) {
        const { done, value } = await Promise.race([reader.read(), late]);
        if (done) break;
        if (length + value.length > size) throw new Error(`more than ${size} bytes`);
        bytes.set(value, length);
        length += value.length;
      }
      if (length < size) throw new Error(`${length} of ${size} bytes`);
    } catch (cause) {
      reader.cancel().catch(() => {});
      throw damagedBlob(sha, (cause as Error).message.split("\n")[0]!, cause);
    }
    return bytes;
  }
}
