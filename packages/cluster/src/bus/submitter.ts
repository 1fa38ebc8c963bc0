import { setTimeout as delay } from "node:timers/promises";
import { ClusterError } from "@cria/core";
import { z } from "zod";
import { type BusStore, changeRecord, persist, type RecordEntry } from "./bus-store.js";
import type { Directory } from "./directory.js";
import type { BusOptions, BusStats, JobKind, JobResult, SubmitOptions } from "./job-bus.js";
import {
  closedError,
  conflictError,
  deadlineError,
  declinedError,
  givenUpError,
  withdrawError,
  withdrawnError,
} from "./job-errors.js";
import {
  claimKey,
  claimOf,
  cleanText,
  hashText,
  type JobMessage,
  type JobRecord,
  jobName,
  mayBegin,
  openRecord,
  readJobRecord,
  toCanonicalJson,
} from "./job-record.js";
import { Slots } from "./slots.js";
import { writeMessage } from "./write-message.js";

/** Settled jobs that are remembered, to report a late second result. */
const REMEMBERED = 10_000;
/** Time until a full queue is tried again. */
const FULL_MS = 100;
/** Outstanding jobs that are checked at once. */
const SWEEP_WIDTH = 32;

interface Pending {
  kind: JobKind;
  message: JobMessage;
  promise: Promise<JobResult<unknown>>;
  settle(outcome: { result: JobResult<unknown> } | { error: unknown }): void;
  settled: boolean;
  withdrawn?: Promise<void>;
  record?: JobRecord;
  /** Revision of `record`; older ones are ignored. */
  revision: number;
}

/** The coordinator's side: queues jobs, watches their records, settles their promises. */
export class Submitter {
  readonly stats: BusStats = {
    submitted: 0,
    done: 0,
    failed: 0,
    outstanding: 0,
    waiting: 0,
    retries: 0,
    conflicts: 0,
  };
  readonly #store: BusStore;
  readonly #directory: Directory;
  readonly #report: (problem: ClusterError) => void;
  readonly #slots: Slots;
  readonly #pending = new Map<string, Pending>();
  /** Ids with the number of reported conflicts. */
  readonly #remembered = new Map<string, number>();
  readonly #stop = new AbortController();
  /** The last submission that waits for room in the queue. */
  #line: Promise<void> = Promise.resolve();
  #hasBeenFull = false;
  #listening?: Promise<void>;
  #sweeping?: Promise<void>;

  constructor(store: BusStore, directory: Directory, options: Required<BusOptions>) {
    this.#store = store;
    this.#directory = directory;
    this.#report = options.onProblem;
    this.#slots = new Slots(options.maxOutstanding, this.stats);
  }

  async submit<Payload, Value>(
    kind: JobKind<Payload, Value>,
    payload: Payload,
    options: SubmitOptions = {},
  ): Promise<JobResult<Value>> {
    options.signal?.throwIfAborted();
    if (this.#stop.signal.aborted) throw closedError(kind.name);
    const { message, text } = writeMessage(kind, payload, options);
    const known = this.#pending.get(message.id);
    if (known) return known.promise as Promise<JobResult<Value>>;
    const pending = this.#add(kind as JobKind, message, options);
    this.stats.submitted++;
    // Any failure to start settles the promise too.
    this.#start(pending, text).catch((error) => pending.settle({ error }));
    return pending.promise as Promise<JobResult<Value>>;
  }

  #add(kind: JobKind, message: JobMessage, { signal, deadlineMs }: SubmitOptions): Pending {
    const { promise, resolve, reject } = makeResolvers<JobResult<unknown>>();
    const abort = () => pending.settle({ error: signal!.reason });
    const expire = () => pending.settle({ error: deadlineError(kind.name, message.id, deadlineMs!, pending.record) });
    const timer = deadlineMs === undefined ? undefined : setTimeout(expire, deadlineMs);
    const pending: Pending = {
      kind,
      message,
      promise,
      settled: false,
      revision: 0,
      settle: (outcome) => {
        if (pending.settled) return;
        pending.settled = true;
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        this.#pending.delete(message.id);
        this.#remember(message.id, pending.record?.conflicts.length ?? 0);
        if ("result" in outcome) {
          this.stats.done++;
          resolve(outcome.result);
        } else {
          this.stats.failed++;
          reject(outcome.error);
          pending.withdrawn = this.#withdraw(message).catch((cause) => this.#report(withdrawError(message, cause)));
        }
      },
    };
    signal?.addEventListener("abort", abort);
    this.#pending.set(message.id, pending);
    return pending;
  }

  async #start(pending: Pending, text: string): Promise<void> {
    const settled = new AbortController();
    const stop = () => settled.abort();
    pending.promise.then(stop, stop);
    if (!(await this.#slots.take(settled.signal))) return;
    const release = () => this.#slots.release();
    pending.promise.then(release, release);
    const isOver = () => pending.settled;
    const asking = { what: "to queue a job", report: this.#report };
    await persist(this.#store, () => this.#listen(), isOver, asking);
    const enqueue = () =>
      persist(this.#store, () => this.#enqueue(pending, text), isOver, asking).then(
        () => true,
        (error) => this.#noteFull(error),
      );
    if (!(await enqueue())) await this.#standInLine(enqueue, isOver);
  }

  /** @throws any error except that of a full queue. */
  #noteFull(error: unknown): false {
    if (!(error instanceof ClusterError) || error.code !== "cluster/queue-full") throw error;
    if (!this.#hasBeenFull) this.#report(error);
    this.#hasBeenFull = true;
    return false;
  }

  /** Makes jobs that a full queue refused try again one after another, so that they do not flood it. */
  async #standInLine(enqueue: () => Promise<boolean>, isOver: () => boolean): Promise<void> {
    const before = this.#line;
    const { promise, resolve } = makeResolvers<void>();
    this.#line = promise;
    await before;
    try {
      while (!isOver() && !(await enqueue())) await delay(FULL_MS);
    } finally {
      resolve();
    }
  }

  /** Opens the job's record and queues the job, unless its result is already stored. */
  async #enqueue(pending: Pending, text: string): Promise<void> {
    const { id, kind } = pending.message;
    const { answer: record, revision } = await changeRecord(this.#store.jobs, id, async (found) => {
      const before = found === undefined ? undefined : readOrUndefined(id, found);
      if (before?.status === "open") return { answer: before };
      if (before?.status === "done" && "result" in (await this.#readResult(pending, before))) return { answer: before };
      const opened = openRecord();
      return { text: JSON.stringify(opened), answer: opened };
    });
    if (record.status === "open" && !pending.settled) await this.#store.queue.put(kind, id, Buffer.from(text));
    if (pending.settled) await this.#withdraw(pending.message);
    else this.#apply(pending, record, revision);
  }

  async #readResult(
    pending: Pending,
    record: JobRecord,
  ): Promise<{ result: JobResult<unknown> } | { error: ClusterError }> {
    const { id, kind } = pending.message;
    const { value, meta, hash, worker } = record.result!;
    const fail = (received: string) => ({
      error: new ClusterError("has an invalid result", {
        code: "cluster/invalid-result",
        subject: jobName(kind, id),
        expected: "the kind's value, with its hash",
        received: `from worker ${worker}: ${received}`,
        remedy: "check the versions on that worker",
      }),
    });
    const parsed = pending.kind.value.safeParse(value);
    if (!parsed.success) return fail(cleanText(z.prettifyError(parsed.error)));
    if (hashText(toCanonicalJson(value)) !== hash) return fail("another hash");
    const claim = await this.#store.jobs.get(claimKey(id, worker));
    if (claim?.text !== claimOf(record.result!)) return fail("a result that the worker itself has not recorded");
    return { result: { value: parsed.data, meta, hash, worker, tries: record.tries.length } };
  }

  /** Applies a record to its pending job. */
  #apply(pending: Pending, record: JobRecord, revision: number): void {
    if (revision <= pending.revision) return;
    pending.revision = revision;
    const { kind, id, maxTries } = pending.message;
    const before = pending.record;
    this.stats.retries += Math.max(0, record.tries.length - Math.max(1, before?.tries.length ?? 1));
    pending.record = record;
    if (record.status === "done" && record.result)
      persist(
        this.#store,
        () => this.#readResult(pending, record),
        () => pending.settled,
      ).then(pending.settle, (error) => pending.settle({ error }));
    else if (record.status === "given-up") pending.settle({ error: givenUpError(kind, id, maxTries, record) });
    else if (record.status === "withdrawn") pending.settle({ error: withdrawnError(kind, id) });
    else this.#checkRefused(pending);
  }

  /** Settles a job that every worker declined or failed at. */
  #checkRefused(pending: Pending): void {
    const { record } = pending;
    if (!record || !isRefused(record)) return;
    const { kind, id, maxTries } = pending.message;
    // The list is complete only after the directory has read all records.
    this.#directory.list().then(
      (workers) => {
        const able = workers.filter((worker) => Object.hasOwn(worker.slots, kind));
        if (able.length === 0 || able.some((worker) => mayBegin(record, worker.id))) return;
        const hasFailed = record.tries.some(({ reason }) => reason !== undefined);
        const error = hasFailed ? givenUpError(kind, id, maxTries, record) : declinedError(kind, id, record.declined);
        pending.settle({ error });
      },
      () => {},
    );
  }

  /**
   * Begins to watch, once. After a lost connection it reads each outstanding job's record, because changes may have
   * been missed.
   */
  #listen(): Promise<void> {
    this.#listening ??= this.#begin().catch((error) => {
      this.#listening = undefined;
      throw error;
    });
    return this.#listening;
  }

  async #begin(): Promise<void> {
    await this.#directory.watch(() => {
      for (const pending of this.#pending.values()) this.#checkRefused(pending);
    }, this.#stop.signal);
    await this.#store.jobs.watch("now", (id, entry) => this.#onChange(id, entry), this.#stop.signal);
    const sweep = () => void this.#sweep().catch(() => {});
    this.#store.onReconnect(sweep);
    const timer = setInterval(sweep, this.#store.times.ackWaitMs);
    timer.unref();
    this.#stop.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  }

  #onChange(id: string, entry: RecordEntry | undefined): void {
    const pending = this.#pending.get(id);
    const reported = this.#remembered.get(id);
    if (entry === undefined || (!pending && reported === undefined)) return;
    try {
      const record = readJobRecord(id, entry.text);
      for (const { worker } of record.conflicts.slice(pending?.record?.conflicts.length ?? reported ?? 0)) {
        this.stats.conflicts++;
        this.#report(conflictError(id, worker, record));
      }
      if (reported !== undefined) this.#remembered.set(id, record.conflicts.length);
      if (pending) this.#apply(pending, record, entry.revision);
    } catch (error) {
      this.#report(error as ClusterError);
    }
  }

  /** Reads each outstanding job's record, and queues the job again if the queue lost it. One sweep at a time. */
  #sweep(): Promise<void> {
    this.#sweeping ??= this.#lookAgain().finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  async #lookAgain(): Promise<void> {
    // Jobs without a record are still being queued.
    const rest = [...this.#pending.values()].filter(({ record }) => record !== undefined);
    const look = async () => {
      for (let pending = rest.pop(); pending; pending = rest.pop())
        await this.#enqueue(pending, JSON.stringify(pending.message)).catch((error) => this.#noteFull(error));
    };
    // One after another would take minutes over a slow connection.
    await Promise.all(Array.from({ length: SWEEP_WIDTH }, look));
  }

  async #withdraw({ id, kind }: JobMessage): Promise<void> {
    if (this.#store.closed.aborted) return;
    await changeRecord(this.#store.jobs, id, (found) => {
      const record = found === undefined ? undefined : readOrUndefined(id, found);
      if (record?.status !== "open") return { answer: undefined };
      return { text: JSON.stringify({ ...record, status: "withdrawn" }), answer: undefined };
    });
    await this.#store.queue.remove(kind, id);
  }

  #remember(id: string, conflicts: number): void {
    this.#remembered.delete(id);
    this.#remembered.set(id, conflicts);
    if (this.#remembered.size > REMEMBERED) this.#remembered.delete(this.#remembered.keys().next().value!);
  }

  /**
   * Rejects pending jobs, and withdraws them if the bus is reachable.
   * @param reason of the close; absent if the caller asked for it.
   */
  async close(reason?: ClusterError): Promise<void> {
    this.#stop.abort();
    const open = [...this.#pending.values()];
    for (const pending of open) pending.settle({ error: reason ?? closedError(pending.message.kind) });
    await Promise.all(open.map(({ withdrawn }) => withdrawn));
  }
}

function makeResolvers<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}

/** True if an open job is closed to every worker. */
const isRefused = ({ declined, tries }: JobRecord): boolean =>
  tries.some(({ reason }) => reason !== undefined) || Object.keys(declined).length > 0;

function readOrUndefined(id: string, text: string): JobRecord | undefined {
  try {
    return readJobRecord(id, text);
  } catch {
    return undefined;
  }
}
