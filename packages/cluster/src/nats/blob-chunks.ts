import type { JetStreamClient } from "@nats-io/jetstream";
import { ChunkWindow } from "./chunk-window.js";

/** Where a blob's chunks are. */
export interface ChunkPlace {
  stream: string;
  subject: string;
}

/** Writes and reads the chunks of blobs, several at once. */
export class BlobChunks {
  readonly #client: JetStreamClient;
  readonly #window = new ChunkWindow();
  readonly #reads = new Set<() => void>();

  constructor(client: JetStreamClient) {
    this.#client = client;
  }

  /**
   * Sends bytes in chunks and waits until the server has stored all of them, in order. When one fails it sends no more, and waits for
   * those that are on the way.
   * @returns how many chunks there are. @throws the first failure.
   */
  async write({ stream, subject }: ChunkPlace, bytes: Uint8Array, chunkBytes: number): Promise<number> {
    const sequences: number[] = [];
    const onTheWay: Promise<void>[] = [];
    const failures: unknown[] = [];
    const send = async (index: number) => {
      const sent = performance.now();
      let arrived = false;
      try {
        const chunk = bytes.subarray(index * chunkBytes, (index + 1) * chunkBytes);
        const { seq } = await this.#client.publish(subject, chunk, { expect: { streamName: stream } });
        sequences[index] = seq;
        arrived = true;
      } catch (error) {
        failures.push(error);
      } finally {
        this.#window.learn(sent, performance.now(), arrived);
        this.#window.leave();
      }
    };
    const chunks = Math.ceil(bytes.length / chunkBytes);
    for (let index = 0; index < chunks; index++) {
      await this.#window.enter();
      if (failures.length > 0) {
        this.#window.leave();
        break;
      }
      onTheWay.push(send(index));
    }
    await Promise.all(onTheWay);
    if (failures.length > 0) throw failures[0];
    // What a lost connection still held may be stored after what the next one brought.
    if (sequences.some((sequence, index) => index > 0 && sequence < sequences[index - 1]!))
      throw new Error("chunks were stored in another order than they were sent");
    return chunks;
  }

  /**
   * Reads so many chunks in order; after a lost connection it goes on where it was.
   * @param onChunk may throw, which ends it.
   * @returns whether they were there. @throws what `onChunk` throws; the signal's reason; errors of the connection.
   */
  async read(
    { stream, subject }: ChunkPlace,
    chunks: number,
    onChunk: (bytes: Uint8Array) => void,
    signal: AbortSignal,
  ): Promise<boolean> {
    let received = 0;
    let last = 0;
    while (received < chunks) {
      signal.throwIfAborted();
      const consumer = await this.#client.consumers.getPushConsumer(stream, {
        filter_subjects: subject,
        ...(last > 0 && { opt_start_seq: last + 1 }),
      });
      const { num_pending: pending } = await consumer.info(true);
      if (pending !== chunks - received) {
        consumer.delete().catch(() => {});
        return false;
      }
      signal.throwIfAborted();
      let ended = false;
      const messages = await consumer.consume({
        callback: ({ seq, data }) => {
          if (ended) return;
          last = seq;
          received++;
          ended = received === chunks;
          onChunk(data);
          if (ended) stop();
        },
      });
      const stop = () => {
        ended = true;
        messages.stop();
      };
      this.#reads.add(stop);
      signal.addEventListener("abort", stop);
      const error = await messages.closed();
      this.#reads.delete(stop);
      signal.removeEventListener("abort", stop);
      // Nobody waits for it: the server drops it after a while in any case.
      consumer.delete().catch(() => {});
      if (error) throw error;
    }
    return true;
  }

  /** Begins reads anew where they are: what was on the way when the connection was lost does not come any more. */
  renew(): void {
    for (const stop of this.#reads) stop();
  }
}
