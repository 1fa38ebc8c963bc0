import { setTimeout as delay } from "node:timers/promises";
import { JetStreamApiError } from "@nats-io/jetstream";
import { type KV, type KvEntry, KvWatchInclude } from "@nats-io/kv";
import type { RecordEntry, Records } from "../bus/bus-store.js";

const WRONG_REVISION = 10071;

const readEntry = (entry: KvEntry | null): RecordEntry | undefined =>
  entry && entry.operation === "PUT" ? { text: entry.string(), revision: entry.revision } : undefined;

/** Records in a key-value bucket. */
export class NatsRecords implements Records {
  readonly #bucket: KV;
  readonly #closed: AbortSignal;

  constructor(bucket: KV, closed: AbortSignal) {
    this.#bucket = bucket;
    this.#closed = closed;
  }

  async get(key: string): Promise<RecordEntry | undefined> {
    return readEntry(await this.#bucket.get(key));
  }

  async set(key: string, text: string, seen?: number): Promise<number | undefined> {
    try {
      if (seen === undefined) return await this.#bucket.put(key, text);
      // `create` also knows keys that were deleted.
      return await (seen === 0 ? this.#bucket.create(key, text) : this.#bucket.update(key, text, seen));
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === WRONG_REVISION) return undefined;
      throw error;
    }
  }

  async delete(key: string): Promise<void> {
    await this.#bucket.purge(key);
  }

  async watch(
    from: "all" | "now",
    onChange: (key: string, entry: RecordEntry | undefined) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const ended = AbortSignal.any([signal, this.#closed]);
    const follow = async (include: "all" | "now", onReady: () => void) => {
      const changes = await this.#bucket.watch({
        include: include === "all" ? KvWatchInclude.LastValue : KvWatchInclude.UpdatesOnly,
      });
      const stop = () => changes.stop();
      ended.addEventListener("abort", stop, { once: true });
      const whole = await this.#isEmpty(changes, include);
      if (whole) onReady();
      for await (const change of changes) {
        if (ended.aborted) return;
        onChange(change.key, readEntry(change));
        if (change.delta === 0) onReady();
      }
      ended.removeEventListener("abort", stop);
    };
    await new Promise<void>((resolve, reject) => {
      let ready = false;
      const onReady = () => {
        ready = true;
        resolve();
      };
      const run = async () => {
        let include = from;
        while (!ended.aborted) {
          try {
            await follow(include, onReady);
          } catch (error) {
            if (!ready) return reject(error);
          }
          // A watch that ended has missed changes: begin with what is there now.
          include = "all";
          if (!ended.aborted) await delay(250);
        }
        resolve();
      };
      void run();
    });
  }

  /** Whether a watch begins with nothing. */
  async #isEmpty(changes: unknown, include: "all" | "now"): Promise<boolean> {
    if (include === "now") return true;
    const { _data } = changes as { _data?: { info(cached: boolean): Promise<{ num_pending: number }> } };
    return ((await _data?.info(true))?.num_pending ?? 0) === 0;
  }
}
