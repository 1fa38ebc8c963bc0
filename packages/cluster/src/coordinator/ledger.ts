import type { ClusterView } from "@cria/records";
import type { StepMetrics } from "@cria/trainer";
import type { BusStats, JobKindName, WorkerInfo } from "../bus/job-bus.js";

type Counts = Record<JobKindName, number>;
const noJobs = (): Counts => ({ rollout: 0, score: 0, gradient: 0 });

/** A worker gets no more jobs after this many in a row that others finished sooner, though they began later. */
const OVERTAKEN_IN_ROW = 5;

/** Period over which a worker's speed is measured, in milliseconds. */
const RATE_MS = 60_000;

interface Entry {
  info: WorkerInfo;
  isThere: boolean;
  /** Reason why its results are refused. */
  shutOut: string | null;
  done: Counts;
  /** Times of its last results. */
  times: number[];
  audits: { passed: number; failed: number };
  /** Its last jobs in a row that others finished sooner. */
  overtaken: number;
  /** Its last failed conversations in a row. */
  failures: number;
  /** True once an undecided audit of it was reported. */
  isOpenTold: boolean;
}

const isStuck = ({ overtaken }: Entry) => overtaken >= OVERTAKEN_IN_ROW;
const isUnwanted = (entry: Entry) => entry.shutOut !== null || isStuck(entry);

function findState(entry: Entry): ClusterView["workers"][number]["state"] {
  const { info, isThere, shutOut } = entry;
  if (shutOut !== null) return "shut-out";
  if (!isThere) return "gone";
  if (info.draining) return "draining";
  if (isStuck(entry)) return "stuck";
  return Object.values(info.slots).includes(0) ? "failing" : "ready";
}

/** The coordinator's counts, for the metrics of each step and for observers. */
export class Ledger {
  private readonly entries = new Map<string, Entry>();
  private readonly here = noJobs();
  private readonly traffic = { gradients: 0, jobs: 0 };
  private abandoned = 0;
  private copies = 0;
  private otherClass = 0;
  private audits = { passed: 0, failed: 0, open: 0 };
  /** All counts at the end of the last step. */
  private last: StepMetrics = {};

  constructor(
    private readonly stats: Readonly<BusStats>,
    private readonly now: () => number = Date.now,
  ) {}

  setWorkers(workers: readonly WorkerInfo[]): void {
    for (const entry of this.entries.values()) entry.isThere = false;
    for (const info of workers) {
      const entry = this.entryOf(info.id);
      entry.info = info;
      entry.isThere = true;
    }
  }

  /** Workers that get no more jobs: shut out, or stuck. */
  get unwanted(): string[] {
    return [...this.entries.values()].filter(isUnwanted).map(({ info }) => info.id);
  }

  isShutOut(worker: string): boolean {
    return (this.entries.get(worker)?.shutOut ?? null) !== null;
  }

  isUnwanted(worker: string): boolean {
    const entry = this.entries.get(worker);
    return entry !== undefined && isUnwanted(entry);
  }

  /** Workers that have a job in hand, by their last record. */
  holdersOf(job: string): string[] {
    const has = ({ info, isThere }: Entry) => isThere && info.doing.some(({ id }) => id === job);
    return [...this.entries.values()].filter(has).map(({ info }) => info.id);
  }

  /** Counts a second copy of a job that took long. */
  copied(): void {
    this.copies++;
  }

  /**
   * Counts a worker's job that another worker finished sooner, though it was given the job later.
   * @returns true if the worker gets no more jobs from now on.
   */
  overtaken(worker: string): boolean {
    return ++this.entryOf(worker).overtaken === OVERTAKEN_IN_ROW;
  }

  doneHere(kind: JobKindName): void {
    this.here[kind]++;
  }

  /** @param bytes sent to the worker and received from it. */
  doneBy(worker: string, kind: JobKindName, bytes: number, isOtherClass: boolean): void {
    const entry = this.entryOf(worker);
    entry.done[kind]++;
    if (!isStuck(entry)) entry.overtaken = 0;
    const now = this.now();
    entry.times = [...entry.times.filter((time) => now - time < RATE_MS), now];
    this.traffic[kind === "gradient" ? "gradients" : "jobs"] += bytes;
    if (isOtherClass) this.otherClass++;
  }

  /** Counts an audit by its result. */
  audited(worker: string, verdict: "same" | "different" | "open" | "none"): void {
    if (verdict === "none") return;
    const counted = { same: "passed", different: "failed", open: "open" } as const;
    this.audits[counted[verdict]]++;
    if (verdict !== "open") this.entryOf(worker).audits[verdict === "same" ? "passed" : "failed"]++;
  }

  /**
   * Refuses results of a worker from now on.
   * @returns true if they were accepted until now.
   */
  shutOut(worker: string, reason: string): boolean {
    const entry = this.entryOf(worker);
    if (entry.shutOut !== null) return false;
    entry.shutOut = reason;
    return true;
  }

  /** Counts a conversation that a worker held. */
  held(worker: string, hasFailed: boolean): void {
    const entry = this.entryOf(worker);
    entry.failures = hasFailed ? entry.failures + 1 : 0;
  }

  failuresInRow(worker: string): number {
    return this.entryOf(worker).failures;
  }

  /** True for the first undecided audit of a worker. */
  mayTellOfOpen(worker: string): boolean {
    const entry = this.entryOf(worker);
    const isFirst = !entry.isOpenTold;
    entry.isOpenTold = true;
    return isFirst;
  }

  gaveUp(): void {
    this.abandoned++;
  }

  /**
   * Metrics since the last call.
   * @param imageBytes of the images that were sent or fetched so far.
   */
  takeMetrics(workers: number, policy: { sent: number; seconds: number }, imageBytes: number): StepMetrics {
    const sum = (counts: Counts) => counts.rollout + counts.score + counts.gradient;
    const totals: StepMetrics = {
      "cluster/jobs_here": sum(this.here),
      "cluster/jobs_elsewhere": [...this.entries.values()].reduce((total, { done }) => total + sum(done), 0),
      "cluster/redelivered": this.stats.retries,
      "cluster/abandoned": this.abandoned,
      "cluster/copies": this.copies,
      "cluster/audits": this.audits.passed + this.audits.failed + this.audits.open,
      "cluster/audits_failed": this.audits.failed,
      "cluster/audits_open": this.audits.open,
      "cluster/other_class": this.otherClass,
      "cluster/policy_bytes": policy.sent,
      "cluster/gradient_bytes": this.traffic.gradients,
      "cluster/job_bytes": this.traffic.jobs,
      "cluster/image_bytes": imageBytes,
    };
    const since = Object.entries(totals).map(([name, total]) => [name, total - (this.last[name] ?? 0)]);
    this.last = totals;
    return { "cluster/workers": workers, ...Object.fromEntries(since), "cluster/policy_seconds": policy.seconds };
  }

  /** The part of a view that is counted here. */
  view(policyBytes: number, waiting: number): Pick<ClusterView, "workers" | "here" | "jobs" | "traffic"> {
    const { outstanding, retries, conflicts } = this.stats;
    return {
      workers: [...this.entries.values()]
        .sort((a, b) => (a.info.id < b.info.id ? -1 : 1))
        .map((entry) => this.describe(entry)),
      here: { ...this.here },
      jobs: { outstanding, waiting, redelivered: retries, abandoned: this.abandoned, conflicts },
      traffic: { ...this.traffic, policy: policyBytes },
    };
  }

  private describe(entry: Entry): ClusterView["workers"][number] {
    const { info, isThere, shutOut, done, times, audits } = entry;
    const count = (kind: JobKindName) => (isThere ? info.doing.filter((job) => job.kind === kind).length : 0);
    const now = this.now();
    return {
      id: info.id,
      host: info.host,
      class: info.class,
      state: findState(entry),
      reason: shutOut ?? (info.lacks?.join("; ") || null),
      slots: { ...noJobs(), ...info.slots },
      doing: { rollout: count("rollout"), score: count("score"), gradient: count("gradient") },
      done: { ...done },
      failed: info.failed,
      lastFailure: info.lastFailure,
      oldest: isThere ? info.oldestS : 0,
      declined: info.declined,
      rate: times.filter((time) => now - time < RATE_MS).length,
      audits: { ...audits },
    };
  }

  private entryOf(id: string): Entry {
    let entry = this.entries.get(id);
    if (!entry) {
      const info: WorkerInfo = {
        id,
        host: "",
        class: "",
        versions: {},
        slots: {},
        doing: [],
        done: 0,
        failed: 0,
        declined: 0,
        oldestS: 0,
        lastFailure: null,
        draining: false,
        lacks: [],
      };
      const audits = { passed: 0, failed: 0 };
      entry = {
        info,
        isThere: false,
        shutOut: null,
        done: noJobs(),
        times: [],
        audits,
        overtaken: 0,
        failures: 0,
        isOpenTold: false,
      };
      this.entries.set(id, entry);
    }
    return entry;
  }
}
