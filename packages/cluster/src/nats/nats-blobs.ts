import { createHash } from "node:crypto";
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import type { ObjectInfo, ObjectStore } from "@nats-io/obj";
import { headers, type NatsConnection, nuid } from "@nats-io/transport-node";
import { checkBlobSize, damagedBlob, missingBlob } from "../bus/blob-errors.js";
import type { Blobs } from "../bus/job-bus.js";
import { hashBytes } from "../bus/job-record.js";
import { BlobChunks, type ChunkPlace } from "./blob-chunks.js";

/** Longest wait for a blob: this, plus a second for each `BYTES_PER_SECOND` bytes. */
const GET_MS = 60_000;
const BYTES_PER_SECOND = 500_000;
const CHUNK_BYTES = 128 * 1024;

export interface NatsBlobsOptions {
  connection: NatsConnection;
  client: JetStreamClient;
  manager: JetStreamManager;
  /** Only looks up and deletes; for reading and writing it hashes in JavaScript and sends one chunk at a time. */
  store: ObjectStore;
  bucket: string;
  /** Most bytes of a blob. */
  most: number;
  /** Aborts reads. */
  closed: AbortSignal;
}

/** Blobs in an object store of NATS, in its own format, named by their SHA-256. */
export class NatsBlobs implements Blobs {
  readonly #options: NatsBlobsOptions;
  readonly #chunks: BlobChunks;

  constructor(options: NatsBlobsOptions) {
    this.#options = options;
    this.#chunks = new BlobChunks(options.client);
  }

  async put(bytes: Uint8Array): Promise<string> {
    const { store, most } = this.#options;
    const sha = hashBytes(bytes);
    checkBlobSize(sha, bytes.length, most);
    const old = await store.info(sha);
    const isThere = old?.size === bytes.length && trimDigest(old.digest) === trimDigest(digestOf(sha));
    if (isThere && (await this.#isWhole(old))) return sha;
    await this.#write(sha, bytes);
    // From now on readers see the new one, even if this role may not delete the old chunks.
    if (old) await this.#purge(this.#place(old.nuid));
    return sha;
  }

  async get(sha: string): Promise<Uint8Array> {
    const info = await this.#options.store.info(sha);
    if (!info || info.deleted) throw missingBlob(sha);
    checkBlobSize(sha, info.size, this.#options.most);
    return this.#read(sha, info);
  }

  async has(sha: string): Promise<boolean> {
    const info = await this.#options.store.info(sha);
    return info !== null && (await this.#isWhole(info));
  }

  async delete(sha: string): Promise<void> {
    if (await this.has(sha)) await this.#options.store.delete(sha);
  }

  /** Restarts reads at their current chunk, over a connection that has returned. */
  renew(): void {
    this.#chunks.renew();
  }

  #place(id: string): ChunkPlace {
    const { bucket } = this.#options;
    return { stream: `OBJ_${bucket}`, subject: `$O.${bucket}.C.${id}` };
  }

  /** True if all of its chunks exist. */
  async #isWhole(info: ObjectInfo): Promise<boolean> {
    if (info.deleted) return false;
    const { stream, subject } = this.#place(info.nuid);
    const { state } = await this.#options.manager.streams.info(stream, { subjects_filter: subject });
    return (state.subjects?.[subject] ?? 0) === info.chunks;
  }

  async #purge({ stream, subject }: ChunkPlace): Promise<void> {
    await this.#options.manager.streams.purge(stream, { filter: subject }).catch(() => {});
  }

  /** Sends the chunks, then the entry that announces them. */
  async #write(sha: string, bytes: Uint8Array): Promise<void> {
    const { connection, client, bucket } = this.#options;
    const id = nuid.next();
    const place = this.#place(id);
    const chunkBytes = Math.min(CHUNK_BYTES, connection.info?.max_payload ?? CHUNK_BYTES);
    try {
      const chunks = await this.#chunks.write(place, bytes, chunkBytes);
      const rollup = headers();
      rollup.set("Nats-Rollup", "sub");
      const info = {
        name: sha,
        description: "",
        options: { max_chunk_size: chunkBytes },
        bucket,
        nuid: id,
        size: bytes.length,
        chunks,
        mtime: new Date().toISOString(),
        digest: digestOf(sha),
        deleted: false,
      };
      await client.publish(`$O.${bucket}.M.${toPaddedBase64Url(sha)}`, JSON.stringify(info), { headers: rollup });
    } catch (error) {
      // Another try sends new chunks, so it need not wait for the lost connection to return.
      void this.#purge(place);
      throw error;
    }
  }

  /** Reads at most the announced size. */
  async #read(sha: string, { nuid: id, size, chunks }: ObjectInfo): Promise<Uint8Array> {
    const { closed } = this.#options;
    const bytes = new Uint8Array(size);
    const hash = createHash("sha256");
    let length = 0;
    const take = (chunk: Uint8Array) => {
      if (length + chunk.length > size) throw damagedBlob(sha, `more than ${size} bytes`);
      bytes.set(chunk, length);
      hash.update(chunk);
      length += chunk.length;
    };
    const end = new AbortController();
    const onClosed = () => end.abort(closed.reason);
    if (closed.aborted) onClosed();
    closed.addEventListener("abort", onClosed);
    const onLate = () => end.abort(damagedBlob(sha, "it did not arrive in time"));
    const timer = setTimeout(onLate, GET_MS + Math.ceil((1000 * size) / BYTES_PER_SECOND));
    try {
      if (!(await this.#chunks.read(this.#place(id), chunks, take, end.signal))) throw missingBlob(sha);
    } finally {
      clearTimeout(timer);
      closed.removeEventListener("abort", onClosed);
    }
    if (length < size) throw damagedBlob(sha, `${length} of ${size} bytes`);
    const found = hash.digest("hex");
    if (found !== sha) throw damagedBlob(sha, `SHA-256 ${found}`);
    return bytes;
  }
}

/** Base64 in the object store's form. */
const toPaddedBase64Url = (text: string | Uint8Array): string =>
  Buffer.from(text).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
const digestOf = (sha: string): string => `SHA-256=${toPaddedBase64Url(Buffer.from(sha, "hex"))}`;
/** Removes the padding, which some clients do not write. */
const trimDigest = (digest: string): string => digest.replace(/=+$/, "");
