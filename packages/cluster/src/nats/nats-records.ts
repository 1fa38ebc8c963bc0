import { setTimeout as delay } from "node:timers/promises";
import { JetStreamApiError } from "@nats-io/jetstream";
import { type KV, type KvEntry, KvWatchInclude } from "@nats-io/kv";
import type { RecordEntry, Records } from "../bus/bus-store.js";

const WRONG_REVISION = 10071;

/**
 * Revisions of a new bucket start again at a small number. To keep the returned revisions growing, their higher digits
 * count the buckets before it.
 */
const GENERATION = 2 ** 40;

/** Records in a key-value bucket. */
export class NatsRecords implements Records {
  readonly #bucket: KV;
  readonly #closed: AbortSignal;
  #generation = 0;
  /** Ends watches, which then restart. */
  readonly #watches = new Set<() => void>();

  constructor(bucket: KV, closed: AbortSignal) {
    this.#bucket = bucket;
    this.#closed = closed;
  }

  async get(key: string): Promise<RecordEntry | undefined> {
    const generation = this.#generation;
    return readEntry(await this.#bucket.get(key), generation);
  }

  async set(key: string, text: string, seen?: number): Promise<number | undefined> {
    const first = this.#generation * GENERATION;
    try {
      if (seen === undefined) return first + (await this.#bucket.put(key, text));
      // `create` also handles deleted keys.
      if (seen === 0) return first + (await this.#bucket.create(key, text));
      // The revision is of a lost bucket.
      if (seen < first) return undefined;
      return first + (await this.#bucket.update(key, text, seen - first));
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
      const generation = this.#generation;
      const changes = await this.#bucket.watch({
        include: include === "all" ? KvWatchInclude.LastValue : KvWatchInclude.UpdatesOnly,
      });
      const stop = () => changes.stop();
      ended.addEventListener("abort", stop, { once: true });
      this.#watches.add(stop);
      try {
        // The bucket was replaced before the watch existed.
        if (generation !== this.#generation) return;
        const whole = await this.#isEmpty(changes, include);
        if (whole) onReady();
        for await (const change of changes) {
          if (ended.aborted || generation !== this.#generation) return;
          onChange(change.key, readEntry(change, generation));
          if (change.delta === 0) onReady();
        }
      } finally {
        this.#watches.delete(stop);
        ended.removeEventListener("abort", stop);
        stop();
      }
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
          // An ended watch has missed changes: report the current entries first.
          include = "all";
          if (!ended.aborted) await delay(250);
        }
        resolve();
      };
      void run();
    });
  }

  /** Starts over with a new, empty bucket: all its entries are new, and watches restart. */
  renew(): void {
    this.#generation++;
    for (const stop of this.#watches) stop();
  }

  /** True if a watch has no entries to report at first. */
  async #isEmpty(changes: unknown, include: "all" | "now"): Promise<boolean> {
    if (include === "now") return true;
    const { _data } = changes as { _data?: { info(cached: boolean): Promise<{ num_pending: number }> } };
    return ((await _data?.info(true))?.num_pending ?? 0) === 0;
  }
}

function readEntry(entry: KvEntry | null, generation: number): RecordEntry | undefined {
  if (entry?.operation !== "PUT") return undefined;
  return { text: entry.string(), revision: generation * GENERATION + entry.revision };
}
