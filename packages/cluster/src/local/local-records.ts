import type { RecordEntry, Records } from "../bus/bus-store.js";

type Listener = (key: string, entry: RecordEntry | undefined) => void;

/** Records in memory. Beyond `maxBytes` the oldest are dropped, as on a server. */
export class LocalRecords implements Records {
  readonly #entries = new Map<string, RecordEntry & { at: number }>();
  readonly #listeners = new Set<Listener>();
  readonly #ttlMs: number;
  readonly #maxBytes: number;
  #bytes = 0;
  #revision = 0;

  constructor(ttlMs = Number.POSITIVE_INFINITY, maxBytes = 256 * 2 ** 20) {
    this.#ttlMs = ttlMs;
    this.#maxBytes = maxBytes;
  }

  async get(key: string): Promise<RecordEntry | undefined> {
    return this.#read(key);
  }

  /** Compares and sets at once: two writers that saw the same revision must not both succeed. */
  async set(key: string, text: string, seen?: number): Promise<number | undefined> {
    const newest = this.#read(key)?.revision ?? 0;
    if (seen !== undefined && seen !== newest) return undefined;
    this.#forget(key);
    const entry = { text, revision: ++this.#revision, at: performance.now() };
    this.#entries.set(key, entry);
    this.#bytes += text.length;
    this.#tell(key, entry);
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#maxBytes || oldest === key) break;
      this.#forget(oldest);
    }
    return entry.revision;
  }

  async delete(key: string): Promise<void> {
    this.#forget(key);
    this.#tell(key, undefined);
  }

  async watch(from: "all" | "now", onChange: Listener, signal: AbortSignal): Promise<void> {
    if (from === "all") {
      for (const [key, entry] of this.#entries) if (this.#isYoung(entry)) onChange(key, entry);
    }
    const listener: Listener = (key, entry) => signal.aborted || onChange(key, entry);
    this.#listeners.add(listener);
    signal.addEventListener("abort", () => this.#listeners.delete(listener), { once: true });
  }

  #read(key: string): RecordEntry | undefined {
    const entry = this.#entries.get(key);
    return entry && this.#isYoung(entry) ? entry : undefined;
  }

  #isYoung({ at }: { at: number }): boolean {
    return performance.now() - at < this.#ttlMs;
  }

  #forget(key: string): void {
    this.#bytes -= this.#entries.get(key)?.text.length ?? 0;
    this.#entries.delete(key);
  }

  /** Calls watchers later, as a server does: the writer continues first. */
  #tell(key: string, entry: RecordEntry | undefined): void {
    for (const listener of this.#listeners) queueMicrotask(() => listener(key, entry));
  }
}
