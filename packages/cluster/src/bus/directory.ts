import { ClusterError } from "@cria/core";
import { z } from "zod";
import type { BusStore } from "./bus-store.js";
import { jobKindNames, PROTOCOL, type WorkerInfo } from "./job-bus.js";
import { cleanText, readMessage, workerId } from "./job-record.js";

/** Most texts about what a worker lacks. */
export const MOST_LACKS = 20;

/** Most workers of one bus; further ones are ignored. */
export const MOST_WORKERS = 1024;
/** Jobs of one kind that a worker may do at once. */
export const MOST_SLOTS = 1024;
const MOST_VERSIONS = 100;

const count = z.int().min(0);
const word = z.string().max(200).transform(cleanText);
const schema = z.object({
  protocol: z.literal(PROTOCOL),
  id: workerId,
  // Workers of older versions do not send it.
  host: word.default("unknown"),
  class: word,
  versions: z.record(word, word).refine((record) => Object.keys(record).length <= MOST_VERSIONS, "too many versions"),
  slots: z.partialRecord(z.enum(jobKindNames), count.max(MOST_SLOTS)),
  doing: z.array(z.object({ id: word, kind: z.enum(jobKindNames) })).max(10_000),
  done: count,
  failed: count,
  declined: count,
  // Older versions do not send this either.
  oldestS: z.number().min(0).default(0),
  lastFailure: z.string().max(1000).transform(cleanText).nullable().default(null),
  draining: z.boolean(),
  lacks: z.array(z.string().max(500).transform(cleanText)).max(MOST_LACKS).default([]),
});

/** A worker's record about itself. */
export const writePresence = (info: WorkerInfo): string => JSON.stringify({ protocol: PROTOCOL, ...info });

/**
 * The present workers, by their records and the local times at which these arrived: other machines' clocks do not
 * matter.
 */
export class Directory {
  readonly #store: BusStore;
  readonly #report: (problem: ClusterError) => void;
  readonly #seen = new Map<string, { info: WorkerInfo; at: number }>();
  readonly #listeners = new Set<() => void>();
  #ready?: Promise<void>;
  #isFull = false;
  #isTelling = false;

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

  /** Calls `onChange` after each change from now on. */
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
        if (this.#seen.has(key) || this.#seen.size < MOST_WORKERS)
          this.#seen.set(key, { info: info as WorkerInfo, at: performance.now() });
        else this.#refuse();
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

  /** Reports it once, until there is room again. */
  #refuse(): void {
    if (this.#isFull) return;
    this.#isFull = true;
    this.#report(
      new ClusterError("has too many workers", {
        code: "cluster/too-many-workers",
        subject: "the bus",
        expected: `at most ${MOST_WORKERS}`,
        received: "another one, which is ignored while the others are present",
        remedy: "give some of them another bus (--prefix), and check that you know all of them: cria workers",
      }),
    );
  }

  /** Calls the listeners once for all changes that came together. */
  #tell(): void {
    if (this.#seen.size < MOST_WORKERS) this.#isFull = false;
    if (this.#isTelling) return;
    this.#isTelling = true;
    setImmediate(() => {
      this.#isTelling = false;
      for (const listener of this.#listeners) listener();
    });
  }
}
