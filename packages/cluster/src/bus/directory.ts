import type { ClusterError } from "@cria/core";
import { z } from "zod";
import type { BusStore } from "./bus-store.js";
import { jobKindNames, PROTOCOL, type WorkerInfo } from "./job-bus.js";
import { cleanText, readMessage, workerId } from "./job-record.js";

/** Texts in which a worker says what it lacks. */
export const MOST_LACKS = 20;

const count = z.int().min(0);
const word = z.string().max(200).transform(cleanText);
const schema = z.object({
  protocol: z.literal(PROTOCOL),
  id: workerId,
  // Workers of older versions do not say it.
  host: word.default("unknown"),
  class: word,
  versions: z.record(word, word),
  slots: z.partialRecord(z.enum(jobKindNames), count),
  doing: z.array(z.object({ id: word, kind: z.enum(jobKindNames) })).max(10_000),
  done: count,
  failed: count,
  declined: count,
  // Nor these.
  oldestS: z.number().min(0).default(0),
  lastFailure: z.string().max(1000).transform(cleanText).nullable().default(null),
  draining: z.boolean(),
  lacks: z.array(z.string().max(500).transform(cleanText)).max(MOST_LACKS).default([]),
});

/** What a worker writes about itself. */
export const writePresence = (info: WorkerInfo): string => JSON.stringify({ protocol: PROTOCOL, ...info });

/** Who is there, by what workers write about themselves and when that was heard here: clocks of others are not asked. */
export class Directory {
  readonly #store: BusStore;
  readonly #report: (problem: ClusterError) => void;
  readonly #seen = new Map<string, { info: WorkerInfo; at: number }>();
  readonly #listeners = new Set<() => void>();
  #ready?: Promise<void>;

  constructor(store: BusStore, report: (problem: ClusterError) => void) {
    this.#store = store;
    this.#report = report;
  }

  async list(): Promise<WorkerInfo[]> {
    await this.#start();
    const oldest = performance.now() - this.#store.times.presenceMs;
    return [...this.#seen.values()]
      .filter(({ at }) => at >= oldest)
      .map(({ info }) => info)
      .sort((left, right) => (left.id < right.id ? -1 : 1));
  }

  /** Calls after each change from now on. */
  async watch(onChange: () => void, signal: AbortSignal): Promise<void> {
    await this.#start();
    this.#listeners.add(onChange);
    signal.addEventListener("abort", () => this.#listeners.delete(onChange), { once: true });
  }

  #start(): Promise<void> {
    this.#ready ??= this.#follow().catch((error) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  async #follow(): Promise<void> {
    const { workers, closed, times } = this.#store;
    await workers.watch("all", (key, entry) => this.#onChange(key, entry?.text), closed);
    const timer = setInterval(() => this.#dropSilent(), times.presenceMs / 4);
    timer.unref();
    closed.addEventListener("abort", () => clearInterval(timer), { once: true });
  }

  #onChange(key: string, text: string | undefined): void {
    if (text === undefined) this.#seen.delete(key);
    else {
      try {
        const { protocol: _, ...info } = readMessage(`worker ${cleanText(key)}`, schema, text);
        if (info.id !== key) return;
        this.#seen.set(key, { info: info as WorkerInfo, at: performance.now() });
      } catch (problem) {
        this.#seen.delete(key);
        this.#report(problem as ClusterError);
      }
    }
    this.#tell();
  }

  #dropSilent(): void {
    const oldest = performance.now() - this.#store.times.presenceMs;
    const silent = [...this.#seen].filter(([, { at }]) => at < oldest);
    for (const [id] of silent) this.#seen.delete(id);
    if (silent.length > 0) this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
