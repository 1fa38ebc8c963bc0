import { setMaxListeners } from "node:events";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { ClusterError } from "@cria/core";
import { z } from "zod";
import { type BusStore, changeRecord, type Delivery, limitTo, persist } from "./bus-store.js";
import { MOST_LACKS, MOST_SLOTS, writePresence } from "./directory.js";
import type { JobHandler, Worker, WorkerInfo, WorkerOptions } from "./job-bus.js";
import { JobLane } from "./job-lane.js";
import {
  boundText,
  claimKey,
  claimOf,
  cleanText,
  hashText,
  type JobMessage,
  type JobRecord,
  jobId,
  jobName,
  mayBegin,
  readJobMessage,
  readJobRecord,
  toCanonicalJson,
  workerId,
} from "./job-record.js";

/** Open requests for one kind of jobs. A frozen worker gets this many jobs, until the requests expire. */
const AHEAD = 4;

class Declined extends Error {}
/** Reason of a job's aborted signal. */
class Released extends Error {}
class Settled extends Error {}

type Outcome =
  | { is: "done"; value: unknown; meta: unknown; hash: string }
  | { is: "failed" | "declined"; reason: string }
  | { is: "released" | "settled" };

/** The worker's side: takes jobs for its free slots, runs them, stores their results, and acknowledges them last. */
export class BusWorker implements Worker {
  readonly id: string;
  readonly #store: BusStore;
  readonly #lanes: JobLane[];
  /** The jobs in hand by id, with the time of taking them. */
  readonly #inHand = new Map<string, number>();
  readonly #working = new Set<Promise<void>>();
  readonly #info: WorkerInfo;
  readonly #report: (problem: ClusterError) => void;
  /** Aborted: take no further jobs. */
  readonly #leaving = new AbortController();
  /** Aborted: give back the jobs in hand, too. */
  readonly #releasing = new AbortController();
  #loops: Promise<void>[] = [];
  /** Loops whose last request failed. */
  #failing = 0;
  #left?: Promise<void>;

  /** @throws ClusterError "cluster/invalid-worker". */
  constructor(store: BusStore, options: WorkerOptions, report: (problem: ClusterError) => void) {
    checkOptions(options);
    // Every slot and every job adds a listener.
    setMaxListeners(0, this.#leaving.signal, this.#releasing.signal, store.closed);
    this.id = options.id;
    this.#store = store;
    const restMs = store.times.presenceMs;
    this.#lanes = options.jobs.map((job) => new JobLane(job, { restMs, onChange: () => this.#tell() }));
    this.#report = report;
    this.#info = {
      id: options.id,
      host: cleanText(hostname()).slice(0, 200),
      class: options.class,
      versions: options.versions,
      slots: {},
      doing: [],
      done: 0,
      failed: 0,
      declined: 0,
      oldestS: 0,
      lastFailure: null,
      draining: false,
      lacks: (options.lacks ?? []).slice(0, MOST_LACKS).map(cleanText),
    };
  }

  /** Registers before it takes jobs, so that a submitter that sees a decline knows the worker. */
  async start(): Promise<void> {
    await this.#announce().catch((cause) => {
      if (!/permission/i.test(String(cause))) throw cause;
      throw new ClusterError("may not join with these credentials", {
        code: "cluster/refused",
        subject: `worker ${this.id}`,
        received: cleanText(String(cause)),
        remedy: "give the key's id, cria worker --id, and the file of a worker's key",
        cause,
      });
    });
    const timer = setInterval(() => this.#tell(), this.#store.times.presenceMs / 3);
    timer.unref();
    this.#releasing.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
    this.#loops = this.#lanes.flatMap((lane) =>
      Array.from({ length: Math.min(AHEAD, lane.handler.slots) }, () => this.#takeJobs(lane)),
    );
  }

  async #announce(): Promise<void> {
    this.#info.slots = Object.fromEntries(this.#lanes.map(({ handler, open }) => [handler.kind.name, open]));
    const now = performance.now();
    this.#info.oldestS = Math.floor((now - Math.min(now, ...this.#inHand.values())) / 1000);
    await this.#store.workers.set(this.id, writePresence(this.#info));
  }

  #tell(): void {
    if (!this.#releasing.signal.aborted) this.#announce().catch(() => {});
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
    this.#tell();
    this.#leaving.abort();
    await Promise.all(this.#loops);
    await Promise.all(this.#working);
    for (const lane of this.#lanes) lane.close();
    this.#releasing.abort(new Released());
    await this.#store.workers.delete(this.id).catch(() => {});
  }

  /** Takes one job after another, each for a free slot. Never rejects. */
  async #takeJobs(lane: JobLane): Promise<void> {
    const { queue, closed } = this.#store;
    let failing = false;
    while (!closed.aborted && (await lane.claim(this.#leaving.signal))) {
      let taken: Promise<void> | undefined;
      try {
        const delivery = await queue.pull(lane.handler.kind.name, this.#leaving.signal);
        if (failing) this.#failing--;
        failing = false;
        taken = delivery && this.#take(lane, delivery);
      } catch (cause) {
        if (closed.aborted) return;
        // Reported once for each outage, not for each request.
        if (!failing && this.#failing++ === 0)
          this.#report(new ClusterError("cannot take jobs", { ...problem(this.id, cause), code: "cluster/worker" }));
        failing = true;
        await delay(500);
      }
      if (!taken) lane.release();
      else {
        const working = taken.finally(() => {
          this.#working.delete(working);
          lane.release();
        });
        this.#working.add(working);
      }
    }
  }

  /** Runs a delivered job. Never rejects. */
  async #take(lane: JobLane, delivery: Delivery): Promise<void> {
    let message: JobMessage;
    try {
      message = readJobMessage(Buffer.from(delivery.data).toString());
      if (message.id !== jobId(message.kind, message.payload) || message.kind !== lane.handler.kind.name)
        throw new ClusterError("has another id than its content", {
          code: "cluster/invalid-message",
          subject: jobName(message.kind, message.id),
        });
    } catch (error) {
      this.#report(error as ClusterError);
      // Another version may read this message; an unreadable one is thrown away.
      if (error instanceof ClusterError && error.code === "cluster/protocol") delivery.retry(2_000);
      else delivery.ack();
      return;
    }
    const job = { id: message.id, kind: message.kind };
    // The bus gave the job out again, because this worker was silent for a while: it still has the job.
    if (this.#inHand.has(job.id)) return delivery.working();
    this.#inHand.set(job.id, performance.now());
    this.#info.doing.push(job);
    try {
      await this.#work(lane, message, delivery);
    } catch (cause) {
      if (!this.#store.closed.aborted) {
        this.#report(
          new ClusterError("is left", { ...problem(jobName(job.kind, job.id), cause), code: "cluster/worker" }),
        );
        delivery.retry(1_000);
      }
    } finally {
      this.#inHand.delete(job.id);
      this.#info.doing.splice(this.#info.doing.indexOf(job), 1);
    }
  }

  async #work(lane: JobLane, message: JobMessage, delivery: Delivery): Promise<void> {
    const begun = await this.#persist(() => this.#begin(message));
    if (begun === "settled") return delivery.ack();
    // The queue delivers it here again while the others are busy, so leave it to them for a moment each time.
    if (begun === "others") return delivery.retry(100 + Math.floor(Math.random() * 400));

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
      const outcome = await this.#run(lane.handler, message, begun, abort.signal);
      if (this.#store.closed.aborted) return;
      if (outcome.is === "settled") return delivery.ack();
      if (outcome.is === "failed") this.#info.lastFailure = `${message.kind}: ${outcome.reason}`;
      if (outcome.is === "failed" || outcome.is === "done") lane.ended(outcome.is === "done");
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

  /**
   * Counts the try before it begins, so that a job which kills its worker is counted too.
   * @returns the number of the try.
   */
  async #begin(message: JobMessage): Promise<number | "settled" | "others"> {
    const { answer } = await changeRecord<number | "settled" | "others">(this.#store.jobs, message.id, (text) => {
      if (text === undefined) return { answer: "settled" };
      const record = readJobRecord(message.id, text);
      if (record.status !== "open") return { answer: "settled" };
      if (!mayBegin(record, this.id)) return { answer: "others" };
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
        throw new Declined(`this worker does not know the payload: ${cleanText(z.prettifyError(payload.error))}`);
      const running = handler.run(payload.data, { id, attempt, trace, signal, decline, giveBack });
      running.catch(() => {});
      const { value, meta = null } = await Promise.race([running, aborted]);
      const parsed = handler.kind.value.safeParse(value);
      if (!parsed.success)
        return { is: "failed", reason: `an invalid value: ${cleanText(z.prettifyError(parsed.error))}` };
      const text = boundText(`the result of ${jobName(kind, id)}`, toCanonicalJson(value));
      boundText(`the meta of the result of ${jobName(kind, id)}`, toCanonicalJson(meta) + text);
      return { is: "done", value, meta, hash: hashText(text) };
    } catch (error) {
      if (error instanceof Declined) return { is: "declined", reason: error.message };
      if (error instanceof Released) return { is: "released" };
      if (signal.aborted) return { is: signal.reason instanceof Settled ? "settled" : "released" };
      return { is: "failed", reason: cleanText(error instanceof Error ? error.message : String(error)) };
    }
  }

  /**
   * Stores the outcome of a job.
   * @returns true if nothing is left to do.
   */
  async #finish(message: JobMessage, outcome: Exclude<Outcome, { is: "settled" }>): Promise<boolean> {
    if (outcome.is === "done") await this.#store.jobs.set(claimKey(message.id, this.id), claimOf(outcome));
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

  /** Compares a second result: an equal one changes nothing, another one is recorded as a conflict. */
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
  const wrong = jobs.find(({ slots }) => !Number.isInteger(slots) || slots < 1 || slots > MOST_SLOTS);
  if (wrong) throw fail(`${wrong.slots} slots for ${wrong.kind.name}`, `a whole number from 1 to ${MOST_SLOTS}`);
}
