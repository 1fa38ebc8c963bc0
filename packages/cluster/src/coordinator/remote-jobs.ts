import { ClusterError } from "@cria/core";
import type { Report } from "@cria/trainer";
import type { JobBus, JobKind, JobResult } from "../bus/job-bus.js";
import { jobId, jobName } from "../bus/job-record.js";
import type { CoordinatorImages } from "../images/coordinator-images.js";
import type { ImageExchange } from "../images/image-exchange.js";
import { type JobMeta, type JobPayload, type JobValue, MOST_AVOIDED, metaSchema } from "../jobs/job-kinds.js";
import { MOST_WORK_INLINE, type Packed, send, sizeOf } from "../jobs/packed.js";
import { DoItHere, Overtaken } from "./dispatcher.js";
import type { Ledger } from "./ledger.js";
import type { SentWeights } from "./publisher.js";

/** Number of times that work is given out when its results are lost or invalid. */
const MOST_ROUNDS = 3;

export interface RemoteJobOptions {
  run: string;
  class: string;
  maxTries: number;
  deadlineMs?: number;
  report?: Report;
}

/** An accepted result. */
export interface Taken<T> {
  value: T;
  worker: string;
  /** True if the worker computes the coordinator's class of bits. */
  isOwnClass: boolean;
}

/** Work that any worker may do. */
export interface OfferedWork<T> {
  work: () => unknown;
  /** The weights that it must be done with, which stay on the bus meanwhile. */
  weights: SentWeights;
  /** True if the work must be done in the coordinator's class of bits. */
  inOwnClass: boolean;
  /** Workers that must not do it. */
  avoid?: () => readonly string[];
  /**
   * The checked result.
   * @throws ClusterError for an invalid one.
   */
  read: (result: Packed, meta: JobMeta) => Promise<T>;
  trace?: Readonly<Record<string, string>>;
}

/** Gives jobs to workers, and checks all their results. */
export class RemoteJobs {
  /** Blobs of finished jobs. */
  private readonly used = new Set<string>();
  /** Blobs of work that is given out, each with the number of its offers. */
  private readonly inHand = new Map<string, number>();
  private readonly told = new Set<string>();
  /** Number of stores that the bus lost: after a loss the same work must be another job. */
  private lostStores = 0;

  constructor(
    private readonly bus: JobBus,
    private readonly ledger: Ledger,
    private readonly images: CoordinatorImages,
    private readonly options: RemoteJobOptions,
  ) {}

  /**
   * Work that any worker may do. The returned function gives it to a worker and returns the result. If it is called
   * again meanwhile, it avoids the workers that have the job in hand; after an unusable result it avoids that worker.
   * @throws (its promise) DoItHere when no worker can do it; the signal's reason.
   */
  offer<T>(kind: JobKind<JobPayload, JobValue>, offered: OfferedWork<T>): (signal: AbortSignal) => Promise<Taken<T>> {
    const avoid = new Set<string>();
    const given = new Set<string>();
    return async (signal) => {
      if (given.size > 0) {
        const holders = [...given].flatMap((id) => this.ledger.holdersOf(id));
        if (holders.length === 0) throw new DoItHere("no worker is known to have it in hand");
        for (const worker of holders) avoid.add(worker);
      }
      const barred = offered.avoid?.() ?? [];
      const images = this.images.ofJob();
      let packed: Packed | undefined;
      try {
        packed = await this.pack(kind.name, await offered.work(), images);
        return await this.giveOut(kind, offered, packed, { avoid, barred, given, signal });
      } finally {
        images.release();
        if (packed) this.release(kind.name, packed);
      }
    };
  }

  private async giveOut<T>(
    kind: JobKind<JobPayload, JobValue>,
    offered: OfferedWork<T>,
    packed: Packed,
    {
      avoid,
      barred,
      given,
      signal,
    }: { avoid: Set<string>; barred: readonly string[]; given: Set<string>; signal: AbortSignal },
  ): Promise<Taken<T>> {
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const excluded = new Set([...avoid, ...barred]);
      const payload: JobPayload = {
        run: this.options.run,
        ...offered.weights,
        class: offered.inOwnClass ? this.options.class : null,
        avoid: [...new Set([...excluded, ...this.ledger.unwanted])].slice(0, MOST_AVOIDED).sort(),
        losses: this.lostStores,
        work: packed,
      };
      const id = jobId(kind.name, payload);
      given.add(id);
      try {
        const result = await this.submit(kind, payload, offered.trace, signal);
        if (!result || this.ledger.isShutOut(result.worker)) continue;
        if (excluded.has(result.worker)) {
          this.warn(`worker ${result.worker} did a job that it was excluded from`, new Error(jobName(kind.name, id)));
          throw new DoItHere("a worker did a job that it was excluded from");
        }
        const taken = await this.take(kind, payload, result, offered.read).catch((error) => {
          signal.throwIfAborted();
          if (!(error instanceof ClusterError) || error.code === "cluster/closed") throw error;
          avoid.add(result.worker);
          // A missing blob or an invalid result: another worker may succeed.
          if (error.code !== "cluster/blob-missing")
            this.warn(`worker ${result.worker} sent an unusable result`, error);
        });
        if (taken) return taken;
      } catch (error) {
        if (signal.reason instanceof Overtaken) this.noteSlow(id);
        throw error;
      } finally {
        given.delete(id);
      }
    }
    throw new DoItHere(`no worker gave a usable result in ${MOST_ROUNDS} rounds`);
  }

  /** Notes workers that were slower than others with the same job. */
  private noteSlow(id: string): void {
    for (const worker of this.ledger.holdersOf(id))
      if (this.ledger.overtaken(worker))
        this.options.report?.({
          type: "warning",
          text: `worker ${worker} gets no more jobs: others finished its last ones sooner, though they began later`,
        });
  }

  /** Forgets everything, because the bus lost its data. */
  lose(): void {
    this.lostStores++;
    this.used.clear();
    this.images.lose();
  }

  /** Deletes blobs of the jobs since the last call, and superfluous images. Never rejects. */
  async forget(): Promise<void> {
    // A blob may be the work of another job by now, of equal content.
    const blobs = [...this.used].filter((sha) => !this.inHand.has(sha));
    this.used.clear();
    await Promise.all([this.images.forget(), this.delete(blobs)]);
  }

  /** Deletes all blobs of jobs. Never rejects. */
  async close(): Promise<void> {
    await Promise.all([this.images.close(), this.delete([...this.used, ...this.inHand.keys()])]);
  }

  private async delete(blobs: readonly string[]): Promise<void> {
    await Promise.all(blobs.map((sha) => this.bus.blobs.delete(sha).catch(() => undefined)));
  }

  private async pack(kind: string, work: unknown, images: ImageExchange): Promise<Packed> {
    let packed: Packed;
    try {
      packed = await send(this.bus, work, images, MOST_WORK_INLINE);
    } catch (cause) {
      if (!(cause instanceof TypeError)) throw cause;
      this.warn(`work of kind ${kind} contains values that cannot travel, and is done here`, cause);
      throw new DoItHere(cause.message);
    }
    if ("blob" in packed) this.inHand.set(packed.blob, (this.inHand.get(packed.blob) ?? 0) + 1);
    return packed;
  }

  /** Ends work that was done here. Gradients are large and many, so their blobs are deleted at once. */
  private release(kind: string, packed: Packed): void {
    if (!("blob" in packed)) return;
    const left = this.inHand.get(packed.blob)! - 1;
    if (left > 0) this.inHand.set(packed.blob, left);
    else {
      this.inHand.delete(packed.blob);
      if (kind === "gradient") this.drop(packed);
      else this.use(packed);
    }
  }

  private async submit(
    kind: JobKind<JobPayload, JobValue>,
    payload: JobPayload,
    trace: Readonly<Record<string, string>> | undefined,
    signal: AbortSignal,
  ): Promise<JobResult<JobValue> | undefined> {
    const { maxTries, deadlineMs } = this.options;
    try {
      return await this.bus.submit(kind, payload, { signal, maxTries, deadlineMs, trace });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ClusterError)) throw error;
      if (error.code === "cluster/declined") throw new DoItHere(error.message);
      if (error.code === "cluster/invalid-result") {
        this.warn("the bus has an unusable result", error);
        return undefined;
      }
      if (!["cluster/given-up", "cluster/lost", "cluster/deadline"].includes(error.code)) throw error;
      // Workers cost time, but no conversation: one that fails with all of them fails here too.
      if (error.code === "cluster/given-up") this.warn("workers failed at jobs, which are done here", error);
      else {
        this.ledger.gaveUp();
        this.warn("jobs were lost with their workers, and are done here", error);
      }
      throw new DoItHere(error.message);
    }
  }

  private async take<T>(
    kind: JobKind<JobPayload, JobValue>,
    payload: JobPayload,
    { value, meta, worker }: JobResult<JobValue>,
    read: (result: Packed, meta: JobMeta) => Promise<T>,
  ): Promise<Taken<T>> {
    const parsed = metaSchema.safeParse(meta);
    if (!parsed.success) {
      throw new ClusterError("has invalid meta data", {
        code: "cluster/invalid-result",
        subject: `a result of worker ${worker}`,
        received: parsed.error.message,
      });
    }
    const isOwnClass = parsed.data.class === this.options.class;
    if (payload.class !== null && !isOwnClass) {
      throw new ClusterError("is of another class of bits", {
        code: "cluster/invalid-result",
        subject: `a result of worker ${worker}`,
        expected: payload.class,
        received: parsed.data.class,
      });
    }
    const taken = await read(value.result, parsed.data);
    const came = [value.result, ...(parsed.data.record ? [parsed.data.record] : [])];
    // Gradients are large and many, so they are deleted as soon as they have arrived.
    if (kind.name === "gradient") for (const each of came) this.drop(each);
    else for (const each of came) this.use(each);
    const bytes = [payload.work, ...came].reduce((sum, each) => sum + sizeOf(each), 0);
    this.ledger.doneBy(worker, kind.name, Math.round(bytes), !isOwnClass);
    return { value: taken, worker, isOwnClass };
  }

  private drop(packed: Packed): void {
    if (!("blob" in packed)) return;
    this.used.delete(packed.blob);
    void this.bus.blobs.delete(packed.blob).catch(() => undefined);
  }

  private use(packed: Packed): void {
    if ("blob" in packed) this.used.add(packed.blob);
  }

  /** Warns once for each kind of problem. */
  private warn(what: string, error: Error): void {
    if (this.told.has(what)) return;
    this.told.add(what);
    this.options.report?.({ type: "warning", text: `${what}\n  ${error.message}` });
  }
}
