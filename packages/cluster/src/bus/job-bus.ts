import type { ClusterError } from "@cria/core";
import type { z } from "zod";

/** What messages look like. Who speaks another version is refused. */
export const PROTOCOL = 1;

export const jobKindNames = ["rollout", "score", "gradient"] as const;
export type JobKindName = (typeof jobKindNames)[number];

/** A kind of jobs: what goes out and what comes back. Both are JSON, and are checked wherever they arrive. */
export interface JobKind<Payload = unknown, Value = unknown> {
  name: JobKindName;
  payload: z.ZodType<Payload>;
  value: z.ZodType<Value>;
}

/** What a worker stores of a job. */
export interface JobResult<Value> {
  /** What the payload alone decides: two workers of one class give the same. */
  value: Value;
  /** What differs from run to run, as JSON: durations, the worker's class. It is not part of the hash. */
  meta: unknown;
  /** SHA-256 of `value` as canonical JSON, in hex. */
  hash: string;
  worker: string;
  /** How many times the job was begun, declines left out; 1 when all went well. */
  tries: number;
}

export interface SubmitOptions {
  /** Withdraws the job: no worker begins it any more, and who does it is told with its next heartbeat. */
  signal?: AbortSignal;
  /** Milliseconds from now until the job is withdrawn. Default: none. */
  deadlineMs?: number;
  /** How many times the job may be begun, 1 to 100; declines and jobs given back are not counted. Default: 3. */
  maxTries?: number;
  /** Travels with the job and is no part of it: the context of a trace. */
  trace?: Readonly<Record<string, string>>;
}

/** What a job's function may ask and tell while it runs. */
export interface JobContext {
  /** SHA-256 of kind and payload, in hex. */
  id: string;
  /** Which try this is; 1 is the first. */
  attempt: number;
  trace: Record<string, string>;
  /** Aborted when the job was withdrawn or done by another, when the worker is closed, and when the bus is. */
  signal: AbortSignal;
  /** Leaves the job to other workers; this one does not get it again. Throws. @param reason one sentence for the submitter. */
  decline(reason: string): never;
  /** Gives the job back, so that any worker begins it anew; this try is not counted. Throws. */
  giveBack(): never;
}

export interface JobHandler<Payload = unknown, Value = unknown> {
  kind: JobKind<Payload, Value>;
  /** How many of these jobs the worker does at once: 1 to 1,024. */
  slots: number;
  /** Does the job. What it throws counts as a failed try, and this worker does not get the job again. */
  run(payload: Payload, context: JobContext): Promise<{ value: Value; meta?: unknown }>;
}

export interface WorkerOptions {
  /** 1 to 64 letters, digits, `-` and `_`, the first a letter or digit; no two workers may share one. */
  id: string;
  /** Workers of one class compute the same bits. */
  class: string;
  /** What is installed, by package: for people and for the coordinator. */
  versions: Record<string, string>;
  /** None: it is only seen. */
  // biome-ignore lint/suspicious/noExplicitAny: each handler has its own payload.
  jobs: JobHandler<any, any>[];
  /** Why it does not do all that it could, for people: at most 20 texts of 500 characters arrive. */
  lacks?: readonly string[];
}

export interface Worker {
  readonly id: string;
  /** Takes no further job, lets those in hand end, and leaves. Never rejects. */
  drain(): Promise<void>;
  /** Gives back the jobs in hand, so that others begin them at once, and leaves. Never rejects. */
  close(): Promise<void>;
}

/** A worker as others see it. */
export interface WorkerInfo {
  id: string;
  /** The name of its machine, at most 200 characters; "unknown" for a worker that does not say. */
  host: string;
  class: string;
  versions: Record<string, string>;
  /** Jobs that it takes at once, by kind. A kind that is missing is not done; 0: it failed too often, and rests for a while. */
  slots: Partial<Record<JobKindName, number>>;
  /** The jobs in hand. */
  doing: { id: string; kind: JobKindName }[];
  done: number;
  failed: number;
  declined: number;
  /** Whole seconds since the oldest job in hand was begun, by the worker's own clock; 0: it has none. */
  oldestS: number;
  /** Why its last job failed, after the kind; null: none did. */
  lastFailure: string | null;
  draining: boolean;
  /** Why it does not do all that it could, for people. */
  lacks: string[];
}

/** Which policy workers roll out with. */
export interface PolicyPointer {
  /** SHA-256 of the training's description, packed, in hex: the blob that workers read first. */
  run: string;
  /** Grows with each update; 0 or more. */
  version: number;
  /** SHA-256 of the trained tensors' bytes, in hex. */
  weights: string;
}

/** A pointer and its place in time: whoever replaces it must have seen it. */
export interface PublishedPolicy extends PolicyPointer {
  revision: number;
}

/** The newest checkpoint of a run, which lies in blobs. */
export interface CheckpointPointer {
  /** Any text that names the run. */
  run: string;
  /** Of the lease that it was written under; 0 or more. */
  term: number;
  /** Training steps done; 0 or more. */
  step: number;
  /** SHA-256 of the blob that lists its files, in hex. */
  manifest: string;
}

/** The right to be the coordinator. */
export interface Lease {
  readonly holder: string;
  /** Grows with each new holder. */
  readonly term: number;
  /** Aborted when the lease is lost: whoever held it must not write any more. */
  readonly signal: AbortSignal;
  /** Gives it back: a standby takes over at once. Never rejects. */
  release(): Promise<void>;
}

/** Big columns and adapters, by the SHA-256 of their bytes in hex. The bus drops the oldest beyond its bounds. */
export interface Blobs {
  /**
   * Stores bytes; those that are there already are not sent again.
   * @returns their SHA-256.
   * @throws ClusterError "cluster/blob-size" beyond the limit.
   */
  put(bytes: Uint8Array): Promise<string>;
  /** @throws ClusterError "cluster/blob-missing", or "cluster/blob-damaged" when what arrives has another SHA-256. */
  get(sha: string): Promise<Uint8Array>;
  has(sha: string): Promise<boolean>;
  delete(sha: string): Promise<void>;
}

/** The server lost what it had stored. */
export interface StoreLoss {
  /** What was asked, and what was answered. */
  problem: ClusterError;
  /** Resolves when the store is there again, empty; rejects with a ClusterError when it cannot be set up. */
  restored: Promise<void>;
}

/** Counts since the bus was opened, of the jobs that this side submitted. */
export interface BusStats {
  submitted: number;
  done: number;
  /** Rejected: given up, lost, declined by all, withdrawn, past the deadline. */
  failed: number;
  /** Submitted and not yet resolved. */
  outstanding: number;
  /** Waiting for one of the outstanding to end. */
  waiting: number;
  /** Tries after the first of a job. */
  retries: number;
  /** Second results with another hash. */
  conflicts: number;
}

/**
 * What a coordinator and its workers share. A job is a value: its id is the SHA-256 of its kind and payload, so submitting it
 * twice is submitting it once. Delivery is at least once, results are taken exactly once: the first that is stored stays,
 * the same again changes nothing, and another hash is reported as a problem.
 */
export interface JobBus {
  /**
   * Queues a job, after waiting while `maxOutstanding` others are unresolved, or the queue is full. A job that is on its way already is joined, with
   * the options that it has; one whose result is still stored resolves at once.
   * @throws ClusterError "cluster/invalid-payload", "cluster/message-size", "cluster/given-up" (after `maxTries`, or when every
   * known worker failed at it or declined it; with the last reason), "cluster/lost" (after `maxTries`, where each time the worker was lost),
   * "cluster/declined" (by every known worker, with their reasons), "cluster/deadline", "cluster/invalid-result",
   * "cluster/closed"; the signal's reason when it is aborted.
   */
  submit<Payload, Value>(
    kind: JobKind<Payload, Value>,
    payload: Payload,
    options?: SubmitOptions,
  ): Promise<JobResult<Value>>;
  /** Registers a worker and begins to take jobs. @throws ClusterError "cluster/invalid-worker". */
  work(options: WorkerOptions): Promise<Worker>;
  readonly blobs: Blobs;

  /** The policy, or undefined before the first is published. */
  readPolicy(): Promise<PublishedPolicy | undefined>;
  /**
   * Replaces the policy that the caller saw.
   * @param seen what `readPolicy` or the last `publishPolicy` gave; undefined: there must be none.
   * @throws ClusterError "cluster/stale-policy" when another was published since.
   */
  publishPolicy(policy: PolicyPointer, seen?: PublishedPolicy): Promise<PublishedPolicy>;
  /** Calls `onPolicy` with the policy that is there, and with each that comes, newest last; some in between may be left out. */
  watchPolicy(onPolicy: (policy: PublishedPolicy) => void, signal: AbortSignal): Promise<void>;

  /**
   * The newest checkpoint of a run, or undefined. From now on holders of earlier terms cannot replace it.
   * @param term of the caller's lease.
   * @throws ClusterError "cluster/stale-checkpoint" when a later holder of the lease wrote it.
   */
  takeCheckpoint(run: string, term: number): Promise<CheckpointPointer | undefined>;
  /**
   * Names a run's newest checkpoint.
   * @returns the one that it replaces.
   * @throws ClusterError "cluster/stale-checkpoint" when a later holder of the lease wrote that.
   */
  nameCheckpoint(pointer: CheckpointPointer): Promise<CheckpointPointer | undefined>;

  /** Who is there: registered, not left, and heard of within `presenceMs`. By id; 1,024 at most. */
  listWorkers(): Promise<WorkerInfo[]>;
  /** Calls `onWorkers` with the list now and whenever it changes. */
  watchWorkers(onWorkers: (workers: WorkerInfo[]) => void, signal: AbortSignal): Promise<void>;

  /**
   * Waits until this holder has the lease. It is renewed until it is released or lost; a holder that does not renew it for
   * `leaseMs` loses it, whatever the machines' clocks say.
   * @param holder who asks, for people; several may have one name.
   * @param onWait called with what is waited for, and each time that this changes: a sentence for people.
   */
  acquireLease(holder: string, signal?: AbortSignal, onWait?: (reason: string) => void): Promise<Lease>;

  /**
   * Calls when the server lost what it had stored: policy, records, jobs and blobs. What was submitted is queued again by itself;
   * blobs are to be put again once it is `restored`, which rejects when the bus cannot be set up anew.
   */
  watchLosses(onLoss: (loss: StoreLoss) => void, signal: AbortSignal): void;
  /** Calls with what nobody waits for, as `BusOptions.onProblem` does. */
  watchProblems(onProblem: (problem: ClusterError) => void, signal: AbortSignal): void;

  readonly stats: Readonly<BusStats>;
  /**
   * Aborted when the bus is closed: by `close`, or by a server that shut this user out (its key was revoked, its JWT ended); the
   * reason is then a ClusterError "cluster/shut-out". A server that is away closes nothing.
   */
  readonly closed: AbortSignal;
  /** Rejects what was submitted, closes workers and leases, and disconnects. Never rejects. */
  close(): Promise<void>;
}

export interface BusOptions {
  /** Jobs that may be submitted and unresolved, at least 1; `submit` waits beyond. Default: as many as the queue has room for. */
  maxOutstanding?: number;
  /** What nobody waits for: a second result with another hash, a message that cannot be read, a server that does not answer. Default: ignored. */
  onProblem?: (problem: ClusterError) => void;
}

/** What all who share a bus agree on. The first who opens it decides. */
export interface BusTimes {
  /** Milliseconds without a heartbeat after which a job is given to another worker. Default: 30,000. */
  ackWaitMs: number;
  /** Milliseconds without a heartbeat after which a worker is gone. Default: 20,000. */
  presenceMs: number;
  /** Milliseconds without a renewal after which a lease may be taken. Default: 15,000. */
  leaseMs: number;
}

export const defaultTimes: BusTimes = { ackWaitMs: 30_000, presenceMs: 20_000, leaseMs: 15_000 };

/** Bytes of a result as JSON; what is larger goes into blobs. */
export const MAX_MESSAGE_BYTES = 512 * 1024;
/** Bytes of a job as JSON: small, so that a queue of bounded size holds many. */
export const MAX_JOB_BYTES = 64 * 1024;
