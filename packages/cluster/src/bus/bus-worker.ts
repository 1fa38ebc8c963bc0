import { setMaxListeners } from "node:events";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { ClusterError } from "@cria/core";
import { z } from "zod";
import { type BusStore, changeRecord, type Delivery, limitTo, persist } from "./bus-store.js";
import { MOST_LACKS, writePresence } from "./directory.js";
import type { JobHandler, Worker, WorkerInfo, WorkerOptions } from "./job-bus.js";
import {
  boundText,
  cleanText,
  hashText,
  type JobMessage,
  type JobRecord,
  jobId,
  jobName,
  readJobMessage,
  readJobRecord,
  toCanonicalJson,
  workerId,
} from "./job-record.js";

class Declined extends Error {}
/** Why a job's signal is aborted. */
class Released extends Error {}
class Settled extends Error {}

type Outcome =
  | { is: "done"; value: unknown; meta: unknown; hash: string }
  | { is: "failed" | "declined"; reason: string }
  | { is: "released" | "settled" };

/** The worker's side: takes jobs with its free slots, does them, stores what came of them, and only then acknowledges. */
export class BusWorker implements Worker {
  readonly id: string;
  readonly #store: BusStore;
  readonly #jobs: JobHandler[];
  readonly #info: WorkerInfo;
  readonly #report: (problem: ClusterError) => void;
  /** No further jobs. */
  readonly #leaving = new AbortController();
  /** No jobs in hand either. */
  readonly #releasing = new AbortController();
  #loops: Promise<void>[] = [];
  #left?: Promise<void>;

  /** @throws ClusterError "cluster/invalid-worker". */
  constructor(store: BusStore, options: WorkerOptions, report: (problem: ClusterError) => void) {
    checkOptions(options);
    // Every slot and every job listens.
    setMaxListeners(0, this.#leaving.signal, this.#releasing.signal, store.closed);
    this.id = options.id;
    this.#store = store;
    this.#jobs = options.jobs;
    this.#report = report;
    this.#info = {
      id: options.id,
      host: cleanText(hostname()).slice(0, 200),
      class: options.class,
      versions: options.versions,
      slots: Object.fromEntries(options.jobs.map(({ kind, slots }) => [kind.name, slots])),
      doing: [],
      done: 0,
      failed: 0,
      declined: 0,
      draining: false,
      lacks: (options.lacks ?? []).slice(0, MOST_LACKS).map(cleanText),
    };
  }

  /** Registers first, so that whoever hears of a decline has heard of the worker. */
  async start(): Promise<void> {
    await this.#announce();
    const timer = setInterval(() => this.#announce().catch(() => {}), this.#store.times.presenceMs / 3);
    timer.unref();
    this.#releasing.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
    this.#loops = this.#jobs.flatMap((job) => Array.from({ length: job.slots }, () => this.#takeJobs(job)));
  }

  async #announce(): Promise<void> {
    await this.#store.workers.set(this.id, writePresence(this.#info));
  }

  drain(): Promise<void> {
    this.#left ??= this.#leave();
    return this.#left;
  }

  async close(): Promise<void> {
    this.#releasing.abort(new Released());
    await this.drain();
  }

  async #leave(): Promise<void> {
    this.#info.draining = true;
    if (!this.#releasing.signal.aborted) this.#announce().catch(() => {});
    this.#leaving.abort();
    await Promise.all(this.#loops);
    this.#releasing.abort(new Released());
    await this.#store.workers.delete(this.id).catch(() => {});
  }

  /** One slot: one job after another. Never rejects. */
  async #takeJobs(handler: JobHandler): Promise<void> {
    const { queue, closed } = this.#store;
    let failing = false;
    while (!this.#leaving.signal.aborted && !closed.aborted) {
      try {
        const delivery = await queue.pull(handler.kind.name, this.#leaving.signal);
        failing = false;
        if (delivery) await this.#take(handler, delivery);
      } catch (cause) {
        if (closed.aborted) return;
        // Once an outage, not once a request.
        if (!failing)
          this.#report(new ClusterError("cannot take jobs", { ...problem(this.id, cause), code: "cluster/worker" }));
        failing = true;
        await delay(500);
      }
    }
  }

  async #take(handler: JobHandler, delivery: Delivery): Promise<void> {
    let message: JobMessage;
    try {
      message = readJobMessage(Buffer.from(delivery.data).toString());
      if (message.id !== jobId(message.kind, message.payload) || message.kind !== handler.kind.name)
        throw new ClusterError("has another id than its content", {
          code: "cluster/invalid-message",
          subject: jobName(message.kind, message.id),
        });
    } catch (error) {
      this.#report(error as ClusterError);
      // Another version is for other workers; what nobody can read is thrown away.
      if (error instanceof ClusterError && error.code === "cluster/protocol") delivery.retry(2_000);
      else delivery.ack();
      return;
    }
    const job = { id: message.id, kind: message.kind };
    this.#info.doing.push(job);
    try {
      await this.#work(handler, message, delivery);
    } catch (cause) {
      if (!this.#store.closed.aborted) {
        this.#report(
          new ClusterError("is left", { ...problem(jobName(job.kind, job.id), cause), code: "cluster/worker" }),
        );
        delivery.retry(1_000);
      }
    } finally {
      this.#info.doing.splice(this.#info.doing.indexOf(job), 1);
    }
  }

  async #work(handler: JobHandler, message: JobMessage, delivery: Delivery): Promise<void> {
    const begun = await this.#persist(() => this.#begin(message));
    if (begun === "settled") return delivery.ack();
    // It will be delivered here again while the others are busy: leave it to them a little longer each time.
    if (begun === "declined") return delivery.retry(100 + Math.floor(Math.random() * 400));

    const abort = new AbortController();
    const release = () => abort.abort(this.#releasing.signal.reason);
    if (this.#releasing.signal.aborted) release();
    this.#releasing.signal.addEventListener("abort", release);
    this.#store.closed.addEventListener("abort", release);
    const beat = setInterval(() => {
      delivery.working();
      this.#isSettled(message.id).then(
        (settled) => settled && abort.abort(new Settled()),
        () => {},
      );
    }, this.#store.times.ackWaitMs / 3);
    beat.unref();
    try {
      const outcome = await this.#run(handler, message, begun, abort.signal);
      if (this.#store.closed.aborted) return;
      if (outcome.is === "settled") return delivery.ack();
      const settled = await this.#persist(() => this.#finish(message, outcome));
      if (outcome.is !== "released") this.#info[outcome.is]++;
      if (settled) delivery.ack();
      else delivery.retry(0);
    } finally {
      clearInterval(beat);
      this.#releasing.signal.removeEventListener("abort", release);
      this.#store.closed.removeEventListener("abort", release);
    }
  }

  /** Counts the try before it begins, so that a job which kills its worker is counted too. @returns which try it is. */
  async #begin(message: JobMessage): Promise<number | "settled" | "declined"> {
    const { answer } = await changeRecord<number | "settled" | "declined">(this.#store.jobs, message.id, (text) => {
      if (text === undefined) return { answer: "settled" };
      const record = readJobRecord(message.id, text);
      if (record.status !== "open") return { answer: "settled" };
      if (Object.hasOwn(record.declined, this.id)) return { answer: "declined" };
      if (record.tries.length >= message.maxTries)
        return { text: JSON.stringify({ ...record, status: "given-up" }), answer: "settled" };
      const tries = [...record.tries, { worker: this.id }];
      return { text: JSON.stringify({ ...record, tries }), answer: tries.length };
    });
    return answer;
  }

  async #isSettled(id: string): Promise<boolean> {
    const entry = await this.#store.jobs.get(id);
    return entry === undefined || readJobRecord(id, entry.text).status !== "open";
  }

  async #run(handler: JobHandler, message: JobMessage, attempt: number, signal: AbortSignal): Promise<Outcome> {
    const { id, kind, trace } = message;
    const decline = (reason: string): never => {
      throw new Declined(cleanText(reason));
    };
    const giveBack = (): never => {
      throw new Released();
    };
    const aborted = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    aborted.catch(() => {});
    try {
      const payload = handler.kind.payload.safeParse(message.payload);
      if (!payload.success)
        throw new Declined(`the payload is not known here: ${cleanText(z.prettifyError(payload.error))}`);
      const running = handler.run(payload.data, { id, attempt, trace, signal, decline, giveBack });
      running.catch(() => {});
      const { value, meta = null } = await Promise.race([running, aborted]);
      const parsed = handler.kind.value.safeParse(value);
      if (!parsed.success)
        return { is: "failed", reason: `an invalid value: ${cleanText(z.prettifyError(parsed.error))}` };
      const text = boundText(`the result of ${jobName(kind, id)}`, toCanonicalJson(value));
      boundText(`what comes with the result of ${jobName(kind, id)}`, toCanonicalJson(meta) + text);
      return { is: "done", value, meta, hash: hashText(text) };
    } catch (error) {
      if (error instanceof Declined) return { is: "declined", reason: error.message };
      if (error instanceof Released) return { is: "released" };
      if (signal.aborted) return { is: signal.reason instanceof Settled ? "settled" : "released" };
      return { is: "failed", reason: cleanText(error instanceof Error ? error.message : String(error)) };
    }
  }

  /** Stores what came of a job. @returns whether nothing is left to do. */
  async #finish(message: JobMessage, outcome: Exclude<Outcome, { is: "settled" }>): Promise<boolean> {
    const { answer } = await changeRecord<boolean>(this.#store.jobs, message.id, (text) => {
      if (text === undefined) return { answer: true };
      const record = readJobRecord(message.id, text);
      if (record.status === "done") return this.#compare(record, outcome);
      if (record.status !== "open") return { answer: true };
      const next = this.#addOutcome(record, message, outcome);
      return { text: JSON.stringify(next), answer: next.status !== "open" };
    });
    return answer;
  }

  /** A second result: the same changes nothing, another is noted. */
  #compare(record: JobRecord, outcome: Outcome): { text?: string; answer: boolean } {
    if (outcome.is !== "done" || outcome.hash === record.result?.hash || record.conflicts.length >= 100)
      return { answer: true };
    const conflicts = [...record.conflicts, { worker: this.id, hash: outcome.hash }];
    return { text: JSON.stringify({ ...record, conflicts }), answer: true };
  }

  #addOutcome(record: JobRecord, message: JobMessage, outcome: Outcome): JobRecord {
    const own = record.tries.findLastIndex(({ worker, reason }) => worker === this.id && reason === undefined);
    const others = record.tries.filter((_, index) => index !== own);
    switch (outcome.is) {
      case "done": {
        const { value, meta, hash } = outcome;
        return { ...record, status: "done", declined: {}, result: { value, meta, hash, worker: this.id } };
      }
      case "declined":
        return { ...record, tries: others, declined: { ...record.declined, [this.id]: outcome.reason } };
      case "failed": {
        const { reason } = outcome;
        const tries = record.tries.map((each, index) => (index === own ? { ...each, reason } : each));
        return { ...record, tries, status: tries.length >= message.maxTries ? "given-up" : "open" };
      }
      default:
        return { ...record, tries: others };
    }
  }

  #persist<T>(write: () => Promise<T>): Promise<T> {
    return persist(this.#store, write, limitTo(4 * this.#store.times.ackWaitMs));
  }
}

const problem = (subject: string, cause: unknown) => ({
  subject,
  received: cleanText(cause instanceof Error ? cause.message : String(cause)),
  cause,
});

function checkOptions({ id, jobs }: WorkerOptions): void {
  const fail = (received: string, expected: string) =>
    new ClusterError("cannot join", {
      code: "cluster/invalid-worker",
      subject: `worker ${cleanText(id)}`,
      expected,
      received,
    });
  if (!workerId.safeParse(id).success) throw fail(`the id ${JSON.stringify(id)}`, "1 to 64 letters, digits, - and _");
  if (new Set(jobs.map(({ kind }) => kind.name)).size < jobs.length)
    throw fail(`the kinds ${jobs.map(({ kind }) => kind.name).join(", ")}`, "each kind once");
  const wrong = jobs.find(({ slots }) => !Number.isInteger(slots) || slots < 1);
  if (wrong) throw fail(`${wrong.slots} slots for ${wrong.kind.name}`, "a whole number, at least 1");
}
