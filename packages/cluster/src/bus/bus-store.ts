import { setTimeout as delay } from "node:timers/promises";
import { ClusterError } from "@cria/core";
import type { Blobs, BusTimes, JobKindName, StoreLoss } from "./job-bus.js";
import { cleanText } from "./job-record.js";

/** A message that a worker took from the queue. Unless it is acknowledged it comes back after `ackWaitMs`. */
export interface Delivery {
  data: Uint8Array;
  /** The job is settled: take it off the queue. */
  ack(): void;
  /** Not settled: give it to any worker, after a while. */
  retry(delayMs: number): void;
  /** Still at it: begin `ackWaitMs` anew. */
  working(): void;
}

export interface JobQueue {
  /** Does nothing when the job is queued or in hand already. @throws ClusterError "cluster/queue-full". */
  put(kind: JobKindName, id: string, data: Uint8Array): Promise<void>;
  remove(kind: JobKindName, id: string): Promise<void>;
  /** The next job; undefined when the signal was aborted, or for no reason: then ask again. */
  pull(kind: JobKindName, signal: AbortSignal): Promise<Delivery | undefined>;
}

export interface RecordEntry {
  text: string;
  /** Larger than that of any earlier entry of these records, also of those that were lost; at least 1. */
  revision: number;
}

/** Texts by key, with compare-and-set. */
export interface Records {
  get(key: string): Promise<RecordEntry | undefined>;
  /**
   * @param seen the revision that must be the newest; 0: there must be none; undefined: whatever is there.
   * @returns the new revision, or undefined when another was newest.
   */
  set(key: string, text: string, seen?: number): Promise<number | undefined>;
  delete(key: string): Promise<void>;
  /**
   * Reports changes until the signal is aborted; undefined: deleted. A connection that was lost may lose changes.
   * @param from "now": changes alone; "all": first every entry that is there.
   * @returns when the entries that were there have been reported.
   */
  watch(
    from: "all" | "now",
    onChange: (key: string, entry: RecordEntry | undefined) => void,
    signal: AbortSignal,
  ): Promise<void>;
}

/**
 * What a bus is made of: a queue, records, blobs. `closed` is aborted when it is closed; calls then reject.
 * Its reason is a ClusterError when nobody here asked for it.
 */
export interface BusStore {
  times: BusTimes;
  queue: JobQueue;
  /** One record a job: `JobRecord`. Old ones vanish. */
  jobs: Records;
  /** One record a worker. They vanish `presenceMs` after they were written. */
  workers: Records;
  /** Policy, lease and newest checkpoints, which only coordinators write. */
  control: Records;
  blobs: Blobs;
  /** Calls when a lost connection is there again, or a lost store: changes may have been missed. */
  onReconnect(listener: () => void): void;
  /** Calls when the server lost what it had stored, before anything is stored anew. */
  onLoss(listener: (loss: StoreLoss) => void): void;
  closed: AbortSignal;
  close(): Promise<void>;
}

/**
 * Reads, changes and writes a record until nobody wrote in between.
 * @param change gives the new text, or undefined to leave it.
 * @returns its answer, and the revision that it is about; 0: there is no record.
 */
export async function changeRecord<T>(
  records: Records,
  key: string,
  change: (text: string | undefined) => { text?: string; answer: T } | Promise<{ text?: string; answer: T }>,
): Promise<{ answer: T; revision: number }> {
  for (;;) {
    const entry = await records.get(key);
    const { text, answer } = await change(entry?.text);
    const before = entry?.revision ?? 0;
    if (text === undefined) return { answer, revision: before };
    const revision = await records.set(key, text, before);
    if (revision !== undefined) return { answer, revision };
  }
}

/** Who hears of what is not answered. */
export interface Asking {
  /** What is asked, for people: "for the policy". */
  what: string;
  report: (problem: ClusterError) => void;
}

/** After this people hear that an answer is waited for, and how often: many may ask at once. */
const PATIENCE_MS = 5_000;
const AGAIN_MS = 30_000;
const toldAt = new WeakMap<BusStore, number>();

/**
 * Asks again while the server is away. What the bus itself says is final, and so is what a role may not do.
 * @param isOver asked after each failure: whether to give up.
 * @param asking who is told when it takes long.
 * @throws ClusterError "cluster/no-answer" when it is over.
 */
export async function persist<T>(
  store: BusStore,
  ask: () => Promise<T>,
  isOver: () => boolean,
  asking?: Asking,
): Promise<T> {
  const began = performance.now();
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      // Who was shut out learns that, and not what its connection says about being closed.
      if (store.closed.reason instanceof ClusterError) throw store.closed.reason;
      if (error instanceof ClusterError || /permission/i.test(String(error)) || store.closed.aborted) throw error;
      const now = performance.now();
      const problem = () => noAnswer(asking?.what, Math.round((now - began) / 1000), error);
      if (isOver()) throw problem();
      if (asking && now - began >= PATIENCE_MS && now - (toldAt.get(store) ?? -AGAIN_MS) >= AGAIN_MS) {
        toldAt.set(store, now);
        asking.report(problem());
      }
      await delay(200);
    }
  }
}

const noAnswer = (what: string | undefined, seconds: number, cause: unknown) =>
  new ClusterError("does not do what it is asked", {
    code: "cluster/no-answer",
    subject: "the bus",
    expected: what === undefined ? undefined : `an answer to: ${what}`,
    received: `for ${seconds} s: ${cleanText(cause instanceof Error ? cause.message : String(cause))}`,
    remedy: "look whether nats-server runs, and has its store folder and room there; restart it where it has not",
    cause,
  });

/** For `persist`: over after so many milliseconds. */
export function limitTo(milliseconds: number): () => boolean {
  const end = performance.now() + milliseconds;
  return () => performance.now() > end;
}
