import type { JetStreamClient } from "@nats-io/jetstream";
import { ChunkWindow } from "./chunk-window.js";

/** Stream and subject of a blob's chunks. */
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
   * Sends bytes in chunks and waits until the server has stored all of them, in order. After a failure it sends no
   * more, and waits for the chunks in flight.
   * @returns the number of chunks.
   * @throws the first failure.
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
    // Chunks that a lost connection still held may be stored after those of the next connection.
    if (sequences.some((sequence, index) => index > 0 && sequence < sequences[index - 1]!))
      throw new Error("chunks were stored in another order than they were sent");
    return chunks;
  }

  /**
   * Reads this many chunks in order; after a lost connection it continues at the same chunk.
   * @param onChunk may throw, which ends the read.
   * @returns true if all of them were there.
   * @throws the errors of `onChunk`; the signal's reason; errors of the connection.
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
      // Not awaited: the server drops it after a while in any case.
      consumer.delete().catch(() => {});
      if (error) throw error;
    }
    return true;
  }

  /** Restarts reads at their current chunk: messages in flight over a lost connection never arrive. */
  renew(): void {
    for (const stop of this.#reads) stop();
  }
}
