import { hostname } from "node:os";
import type { Device } from "@cria/core";
import { type ChecksOf, checkOptions, optionChecks } from "@cria/core/internal";
import type { Report, Task } from "@cria/trainer";
import type { JobBus, JobKindName, PublishedPolicy, Worker } from "../bus/job-bus.js";
import { WITHOUT_TRAINING } from "../jobs/job-kinds.js";
import { version } from "../version.js";
import { makeHandlers } from "./do-jobs.js";
import { ModelSlot } from "./model-slot.js";
import { type PreparedRun, prepareRun } from "./prepare-run.js";
import { WeightsCache } from "./weights-cache.js";

export interface StartWorkerOptions {
  /**
   * 1 to 64 letters, digits, `-` and `_`; no two workers may share one. Default: the machine's name and a random part.
   */
  id?: string;
  /** Conversations at once, 1 to 256. Default: the training's `rollout.max_num_seqs`. */
  slots?: number;
  /** Threads of the model. Default: all cores. */
  threads?: number;
  /** Default "auto". */
  device?: Device;
  /**
   * Folder in which models are searched and stored. Default: the hub's cache and the working directory; the user's
   * cache.
   */
  modelDir?: string;
  /** A folder with user code, or a folder of such folders; packages are resolved from here. Default: the working directory. */
  folder?: string;
  /** Tasks in memory, by name. */
  tasks?: readonly Task<object>[];
  /** Ends the worker at once: the jobs in hand are given back. */
  signal?: AbortSignal;
  report?: Report;
  /** Called with each change of its status, and after each job. */
  onStatus?: (status: WorkerStatus) => void;
}

/** State of a worker. */
export interface WorkerStatus {
  id: string;
  /**
   * "waiting": no training has begun. "preparing": it fetches the model and searches the user code. "working": it takes jobs, if it
   * has `kinds`.
   */
  state: "waiting" | "preparing" | "working" | "left";
  /** SHA-256 of the run's description; null: none yet. */
  run: string | null;
  /** Class of its bits; empty without a model. */
  class: string;
  /** The jobs that it takes. */
  kinds: JobKindName[];
  /** Reasons why it does not do everything. */
  lacks: string[];
  /** Number of jobs since its start. */
  done: number;
  failed: number;
}

export interface RunningWorker {
  readonly id: string;
  readonly status: WorkerStatus;
  /** Resolves when it has left. Never rejects. */
  readonly done: Promise<void>;
  /** Takes no further job, finishes those in hand, and leaves. Never rejects. */
  drain(): Promise<void>;
  /** Gives back the jobs in hand, and leaves. Never rejects. */
  close(): Promise<void>;
}

const { any, text, count } = optionChecks;

const workerChecks: ChecksOf<Required<StartWorkerOptions>> = {
  id: any,
  slots: count,
  threads: count,
  device: any,
  modelDir: text,
  folder: text,
  tasks: [Array.isArray, "a list of tasks: defineTask({ name, rows, reward, ... })"],
  signal: optionChecks.signal,
  report: optionChecks.function,
  onStatus: optionChecks.function,
};

/** Time until missing parts are searched again. */
export const RETRY_MS = 30_000;
/** Time that leaving waits for preparation, and for jobs given back to end. */
const LEAVE_MS = 10_000;
/** Warnings that are remembered, so that none is repeated. */
const MOST_TOLD = 1000;

/**
 * Joins a bus as a worker: it waits for a training, prepares for it as far as it can, and does its jobs; for another
 * training it prepares again. It reports what it lacks. It leaves by `drain` or `close`, which leave the bus open, and
 * when the bus is closed.
 * @throws ConfigError for an unknown or wrong option; ClusterError "cluster/invalid-worker" for an invalid id, and
 * errors of registering.
 */
export async function startWorker(bus: JobBus, options: StartWorkerOptions = {}): Promise<RunningWorker> {
  checkOptions("startWorker", options, workerChecks);
  const worker = new WorkerLoop(bus, options);
  await worker.start();
  return worker;
}

class WorkerLoop implements RunningWorker {
  readonly id: string;
  readonly status: WorkerStatus;
  readonly done: Promise<void>;
  private readonly models = new ModelSlot();
  private readonly weights: WeightsCache;
  private readonly leaving = new AbortController();
  /** Takes jobs, or only lists the worker. */
  private joined: Worker | null = null;
  private prepared: PreparedRun | null = null;
  /** The newest run, and the controller that stops preparing for an older one. */
  private wanted: string | null = null;
  /** True: the run was announced again, and user code was missing. */
  private searchesCode = false;
  private changed = new AbortController();
  private readonly told = new Set<string>();
  /** The running jobs, including those that were given back and have not ended. */
  private readonly running = new Set<Promise<unknown>>();
  private resolveDone!: () => void;
  private left?: Promise<void>;
  private loop: Promise<void> = Promise.resolve();

  constructor(
    private readonly bus: JobBus,
    private readonly options: StartWorkerOptions,
  ) {
    this.id = options.id ?? makeId();
    this.weights = new WeightsCache(bus.blobs);
    this.status = { id: this.id, state: "waiting", run: null, class: "", kinds: [], lacks: [], done: 0, failed: 0 };
    this.done = new Promise((resolve) => {
      this.resolveDone = resolve;
    });
  }

  async start(): Promise<void> {
    const { signal } = this.options;
    signal?.throwIfAborted();
    await this.join([WITHOUT_TRAINING]);
    const close = () => void this.close();
    signal?.addEventListener("abort", close, { once: true });
    this.bus.closed.addEventListener("abort", close, { once: true });
    await this.bus.watchPolicy((policy) => this.follow(policy), this.leaving.signal);
    this.loop = this.serve();
  }

  drain(): Promise<void> {
    this.left ??= this.leave();
    return this.left;
  }

  async close(): Promise<void> {
    const left = this.drain();
    // Also while it drains: the jobs in hand end at once.
    await this.joined?.close();
    await left;
  }

  private async leave(): Promise<void> {
    this.leaving.abort(new Error("the worker leaves"));
    this.changed.abort(this.leaving.signal.reason);
    await this.joined?.drain();
    // Does not wait for an unreachable server.
    await Promise.race([this.loop, wait(LEAVE_MS)]);
    // One may have joined meanwhile.
    await this.joined?.drain();
    await this.forget();
    await this.models.dispose().catch(() => undefined);
    this.setStatus({ state: "left", kinds: [] });
    this.resolveDone();
  }

  private follow({ run, weights }: PublishedPolicy): void {
    if (run === this.wanted) {
      if (this.prepared?.engine) this.weights.prefetch(weights);
      if (this.prepared?.sha === run && this.prepared.findMissingCode) {
        this.searchesCode = true;
        this.changed.abort(new Error("the training was announced again"));
      }
      return;
    }
    this.wanted = run;
    this.changed.abort(new Error("another training began"));
  }

  /** Serves one training after another, until it leaves. Never rejects. */
  private async serve(): Promise<void> {
    while (!this.leaving.signal.aborted) {
      const changed = new AbortController();
      this.changed = changed;
      const { wanted, prepared } = this;
      if (this.searchesCode) {
        this.searchesCode = false;
        if (prepared && (await prepared.findMissingCode?.())) prepared.mayComeBy = true;
      }
      const isPrepared = wanted === null || (prepared?.sha === wanted && !prepared.mayComeBy);
      if (!isPrepared) {
        const ready = await this.prepare(wanted, changed.signal).catch((error) => this.tell(error));
        if (!ready && !changed.signal.aborted && !this.leaving.signal.aborted) await wait(RETRY_MS, changed.signal);
        continue;
      }
      await wait(Number.POSITIVE_INFINITY, changed.signal);
    }
  }

  /** @returns true if nothing is left to try. */
  private async prepare(sha: string, signal: AbortSignal): Promise<boolean> {
    const { options, bus, models, weights } = this;
    const { modelDir, report, threads, device = "auto", slots, folder = process.cwd(), tasks } = options;
    // Without an engine it has taken no jobs.
    const isAgain = this.prepared?.sha === sha && !this.prepared.engine;
    if (!isAgain) {
      // Jobs of a previous training are of no use; other workers do those of this one.
      await this.joined?.close();
      this.told.clear();
      await this.join(["prepares for a training"], sha);
      // Jobs given back may still use the engine.
      await Promise.race([Promise.allSettled(this.running), wait(LEAVE_MS, signal)]);
      signal.throwIfAborted();
    }
    await this.forget();
    const load = { device, threads, ...(slots === undefined ? {} : { maxSequences: slots }) };
    const prepared = await prepareRun(sha, {
      bus,
      models,
      weights,
      places: { folder, tasks },
      modelDir,
      load,
      report,
      signal,
    });
    signal.throwIfAborted();
    this.prepared = prepared;
    try {
      await this.takeJobs(prepared);
    } catch (error) {
      await this.forget();
      throw error;
    }
    return !prepared.mayComeBy;
  }

  private async forget(): Promise<void> {
    const { prepared } = this;
    this.prepared = null;
    await prepared?.dispose();
  }

  private async takeJobs(prepared: PreparedRun): Promise<void> {
    const { engine } = prepared;
    const jobs = makeHandlers(prepared, {
      bus: this.bus,
      id: this.id,
      slots: this.options.slots ?? engine?.info.maxSequences ?? 1,
      onWarning: (text) => this.warn(text),
      onEnd: (outcome) => this.setStatus({ [outcome]: this.status[outcome] + 1 }),
    }).map(({ run, ...handler }) => ({
      ...handler,
      run: (...given: Parameters<typeof run>) => {
        const running = run(...given);
        this.running.add(running);
        return running.finally(() => this.running.delete(running));
      },
    }));
    await this.joined?.drain();
    if (this.leaving.signal.aborted) return;
    this.joined = await this.bus.work({
      id: this.id,
      class: prepared.class,
      versions: { cria: version, node: process.versions.node },
      jobs,
      lacks: prepared.lacks,
    });
    this.setStatus({
      state: "working",
      run: prepared.sha,
      class: prepared.class,
      kinds: jobs.map(({ kind }) => kind.name),
      lacks: prepared.lacks,
    });
    for (const text of prepared.lacks) this.warn(text);
  }

  /** Registers without taking jobs. */
  private async join(lacks: string[], run: string | null = null): Promise<void> {
    const versions = { cria: version, node: process.versions.node };
    this.joined = await this.bus.work({ id: this.id, class: "", versions, jobs: [], lacks });
    this.setStatus({ state: run === null ? "waiting" : "preparing", run, class: "", kinds: [], lacks: [] });
  }

  private setStatus(changes: Partial<WorkerStatus>): void {
    Object.assign(this.status, changes);
    this.options.onStatus?.({ ...this.status });
  }

  private tell(error: unknown): boolean {
    if (!this.leaving.signal.aborted && !this.changed.signal.aborted)
      this.warn(`cannot take part for now\n  ${error instanceof Error ? error.message : String(error)}`);
    return false;
  }

  /** Warns once for each text. */
  private warn(text: string): void {
    if (this.told.has(text)) return;
    if (this.told.size >= MOST_TOLD) this.told.clear();
    this.told.add(text);
    this.options.report?.({ type: "warning", text });
  }
}

/** The machine's name, for people, and a random part. */
function makeId(): string {
  const name = hostname()
    .replace(/[^A-Za-z0-9-]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, 40);
  return `${name || "worker"}-${Math.random().toString(36).slice(2, 8)}`;
}

/** Waits for the time, or until the signal is aborted. */
function wait(milliseconds: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = milliseconds === Number.POSITIVE_INFINITY ? undefined : setTimeout(resolve, milliseconds);
    signal?.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
