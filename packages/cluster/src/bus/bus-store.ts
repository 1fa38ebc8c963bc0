import { setTimeout as delay } from "node:timers/promises";
import { ClusterError } from "@cria/core";
import type { Blobs, BusTimes, JobKindName, StoreLoss } from "./job-bus.js";
import { cleanText } from "./job-record.js";

/** A message that a worker took from the queue. Unless it is acknowledged it comes back after `ackWaitMs`. */
export interface Delivery {
  data: Uint8Array;
  /** Removes the job from the queue, because it is settled. */
  ack(): void;
  /** Returns the job, unsettled, to any worker after the delay. */
  retry(delayMs: number): void;
  /** Restarts `ackWaitMs`, because the work goes on. */
  working(): void;
}

export interface JobQueue {
  /**
   * Does nothing when the job is queued or taken already.
   * @throws ClusterError "cluster/queue-full".
   */
  put(kind: JobKindName, id: string, data: Uint8Array): Promise<void>;
  remove(kind: JobKindName, id: string): Promise<void>;
  /** The next job. undefined: the signal was aborted, or there is none yet, and the caller asks again. */
  pull(kind: JobKindName, signal: AbortSignal): Promise<Delivery | undefined>;
}

export interface RecordEntry {
  text: string;
  /** Larger than that of any earlier entry of these records, lost ones included; at least 1. */
  revision: number;
}

/** Texts by key, with compare-and-set. */
export interface Records {
  get(key: string): Promise<RecordEntry | undefined>;
  /**
   * Writes a record.
   * @param seen the revision that must be the newest; 0: there must be no record; undefined: overwrite any.
   * @returns the new revision, or undefined when another one was the newest.
   */
  set(key: string, text: string, seen?: number): Promise<number | undefined>;
  delete(key: string): Promise<void>;
  /**
   * Reports changes until the signal is aborted; undefined: deleted. A lost connection may lose changes.
   * @param from "now": only changes; "all": all existing entries first.
   * @returns when the existing entries have been reported.
   */
  watch(
    from: "all" | "now",
    onChange: (key: string, entry: RecordEntry | undefined) => void,
    signal: AbortSignal,
  ): Promise<void>;
}

/**
 * The parts of a bus: a queue, records, blobs. `closed` is aborted when the bus is closed; calls then reject. Its
 * reason is a ClusterError unless this side closed the bus.
 */
export interface BusStore {
  times: BusTimes;
  queue: JobQueue;
  /** A `JobRecord` for each job. Old ones expire. */
  jobs: Records;
  /** A record for each worker. They expire `presenceMs` after their last write. */
  workers: Records;
  /** Policy, lease and newest checkpoints; only coordinators write them. */
  control: Records;
  blobs: Blobs;
  /** Calls when a lost connection or a lost store has returned: changes may have been missed. */
  onReconnect(listener: () => void): void;
  /** Calls when the server lost its data, before anything is stored again. */
  onLoss(listener: (loss: StoreLoss) => void): void;
  closed: AbortSignal;
  close(): Promise<void>;
}

/**
 * Reads, changes and writes a record, and repeats this while others write in between.
 * @param change gives the new text, or undefined to leave the record.
 * @returns the answer of `change`, and the revision that it is about; 0: there is no record.
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

/** Recipient of reports about unanswered requests. */
export interface Asking {
  /** The request, for people: "for the policy". */
  what: string;
  report: (problem: ClusterError) => void;
}

/** Time without an answer until it is reported, and time between two reports: many requests may wait at once. */
const PATIENCE_MS = 5_000;
const AGAIN_MS = 30_000;
const toldAt = new WeakMap<BusStore, number>();

/**
 * Repeats a request while the server is unreachable. Errors of the bus are final, and so are refused permissions.
 * @param isOver asked after each failure: whether to give up.
 * @param asking gets a report when it takes long.
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
      // A shut-out user gets that reason, not the error of its closed connection.
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
  new ClusterError("does not answer", {
    code: "cluster/no-answer",
    subject: "the bus",
    expected: what === undefined ? undefined : `an answer to: ${what}`,
    received: `for ${seconds} s: ${cleanText(cause instanceof Error ? cause.message : String(cause))}`,
    remedy: "check that nats-server runs, and that its store folder exists and has room; restart it after repairs",
    cause,
  });

/** Makes an `isOver` for `persist` that gives up after this time. */
export function limitTo(milliseconds: number): () => boolean {
  const end = performance.now() + milliseconds;
  return () => performance.now() > end;
}
