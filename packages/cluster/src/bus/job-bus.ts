import type { ClusterError } from "@cria/core";
import type { z } from "zod";

/** Version of the message format. Messages of another version are refused. */
export const PROTOCOL = 1;

export const jobKindNames = ["rollout", "score", "gradient"] as const;
export type JobKindName = (typeof jobKindNames)[number];

/** A kind of jobs, with the types of payload and value. Both are JSON, and are checked on arrival. */
export interface JobKind<Payload = unknown, Value = unknown> {
  name: JobKindName;
  payload: z.ZodType<Payload>;
  value: z.ZodType<Value>;
}

/** A worker's stored result of a job. */
export interface JobResult<Value> {
  /** Determined by the payload: two workers of one class give the same value. */
  value: Value;
  /** Data that differs from run to run, as JSON: durations, the worker's class. It is not part of the hash. */
  meta: unknown;
  /** SHA-256 of `value` as canonical JSON, in hex. */
  hash: string;
  worker: string;
  /** Number of times that the job was begun, without declines; 1 when all went well. */
  tries: number;
}

export interface SubmitOptions {
  /** Withdraws the job: no worker begins it any more, and the one that runs it learns so with its next heartbeat. */
  signal?: AbortSignal;
  /** Milliseconds from now until the job is withdrawn. Default: no deadline. */
  deadlineMs?: number;
  /** Number of times that the job may be begun, 1 to 100; declines and jobs given back do not count. Default: 3. */
  maxTries?: number;
  /** Context of a trace. It travels with the job without being part of its id. */
  trace?: Readonly<Record<string, string>>;
}

/** A job's id, state and controls, for the function that runs it. */
export interface JobContext {
  /** SHA-256 of kind and payload, in hex. */
  id: string;
  /** Number of the try; 1 is the first. */
  attempt: number;
  trace: Record<string, string>;
  /** Aborted when the job was withdrawn, or finished by another worker, and when the worker or the bus is closed. */
  signal: AbortSignal;
  /**
   * Leaves the job to other workers; this one does not get it again. Throws.
   * @param reason one sentence for the submitter.
   */
  decline(reason: string): never;
  /** Gives the job back to the queue for any worker, without counting this try. Throws. */
  giveBack(): never;
}

export interface JobHandler<Payload = unknown, Value = unknown> {
  kind: JobKind<Payload, Value>;
  /** Number of these jobs that the worker runs at once: 1 to 1,024. */
  slots: number;
  /** Runs the job. An exception counts as a failed try, and this worker does not get the job again. */
  run(payload: Payload, context: JobContext): Promise<{ value: Value; meta?: unknown }>;
}

export interface WorkerOptions {
  /** 1 to 64 letters, digits, `-` and `_`, the first a letter or digit; no two workers may share one. */
  id: string;
  /** Workers of one class compute the same bits. */
  class: string;
  /** Installed versions by package, for people and for the coordinator. */
  versions: Record<string, string>;
  /** Empty: the worker is only listed. */
  // biome-ignore lint/suspicious/noExplicitAny: each handler has its own payload.
  jobs: JobHandler<any, any>[];
  /** Reasons why it does not do everything, for people: at most 20 texts of 500 characters. */
  lacks?: readonly string[];
}

export interface Worker {
  readonly id: string;
  /** Takes no further job, finishes those in hand, and leaves. Never rejects. */
  drain(): Promise<void>;
  /** Gives back the jobs in hand, so that other workers begin them at once, and leaves. Never rejects. */
  close(): Promise<void>;
}

/** A worker as others see it. */
export interface WorkerInfo {
  id: string;
  /** The name of its machine, at most 200 characters; "unknown" for a worker that does not send it. */
  host: string;
  class: string;
  versions: Record<string, string>;
  /**
   * Jobs that it takes at once, by kind. It does not do kinds that are missing; 0: it failed too often, and pauses for
   * a while.
   */
  slots: Partial<Record<JobKindName, number>>;
  /** The jobs in hand. */
  doing: { id: string; kind: JobKindName }[];
  done: number;
  failed: number;
  declined: number;
  /** Whole seconds since the oldest job in hand was begun, by the worker's clock; 0 without one. */
  oldestS: number;
  /** The kind and the reason of its last failed job; null: none failed. */
  lastFailure: string | null;
  draining: boolean;
  /** Reasons why it does not do everything, for people. */
  lacks: string[];
}

/** The policy that workers use for rollouts. */
export interface PolicyPointer {
  /** SHA-256 of the training's packed description, in hex: the blob that workers read first. */
  run: string;
  /** Grows with each update; 0 or more. */
  version: number;
  /** SHA-256 of the trained tensors' bytes, in hex. */
  weights: string;
}

/** A pointer and its revision; only a caller that has seen the newest one may replace it. */
export interface PublishedPolicy extends PolicyPointer {
  revision: number;
}

/** The newest checkpoint of a run, whose files are in blobs. */
export interface CheckpointPointer {
  /** Any text that identifies the run. */
  run: string;
  /** Term of the lease under which it was written; 0 or more. */
  term: number;
  /** Training steps done; 0 or more. */
  step: number;
  /** SHA-256 of the blob that lists its files, in hex. */
  manifest: string;
}

/** The right to coordinate. */
export interface Lease {
  readonly holder: string;
  /** Grows with each new holder. */
  readonly term: number;
  /** Aborted when the lease is lost: its holder must not write any more. */
  readonly signal: AbortSignal;
  /** Gives the lease back, so that a standby takes over at once. Never rejects. */
  release(): Promise<void>;
}

/** Large columns and adapters, by the SHA-256 of their bytes in hex. The bus drops the oldest beyond its bounds. */
export interface Blobs {
  /**
   * Stores bytes, unless they are stored already.
   * @returns their SHA-256.
   * @throws ClusterError "cluster/blob-size" beyond the limit.
   */
  put(bytes: Uint8Array): Promise<string>;
  /**
   * @throws ClusterError "cluster/blob-missing", or "cluster/blob-damaged" when the received bytes have another
   * SHA-256.
   */
  get(sha: string): Promise<Uint8Array>;
  has(sha: string): Promise<boolean>;
  delete(sha: string): Promise<void>;
}

/** The server lost its stored data. */
export interface StoreLoss {
  /** The request that failed, and the server's answer. */
  problem: ClusterError;
  /** Resolves when the store exists again, empty; rejects with a ClusterError when it cannot be set up. */
  restored: Promise<void>;
}

/** Counts since the bus was opened, of the jobs that this side submitted. */
export interface BusStats {
  submitted: number;
  done: number;
  /** Rejected: given up, lost, declined by all, withdrawn, or past the deadline. */
  failed: number;
  /** Submitted and not yet resolved. */
  outstanding: number;
  /** Calls of `submit` that wait for an outstanding job to end. */
  waiting: number;
  /** Tries after a job's first one. */
  retries: number;
  /** Second results with another hash. */
  conflicts: number;
}

/**
 * The connection between a coordinator and its workers. A job is a value: its id is the SHA-256 of its kind and
 * payload, so submitting it twice is submitting it once. Delivery is at least once, but a result is taken exactly once:
 * the first stored one stays, an equal one changes nothing, and another hash is reported as a problem.
 */
export interface JobBus {
  /**
   * Queues a job, after waiting while `maxOutstanding` others are unresolved, or the queue is full. A job that is
   * already queued or running is joined, with its options; one with a stored result resolves at once.
   * @throws ClusterError "cluster/invalid-payload", "cluster/message-size", "cluster/given-up" (after `maxTries`, or
   * when every known worker failed at it or declined it; with the last reason), "cluster/lost" (after `maxTries`, when
   * the worker was lost each time), "cluster/declined" (by every known worker, with their reasons), "cluster/deadline",
   * "cluster/invalid-result", "cluster/closed"; the signal's reason when it is aborted.
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
   * @param seen the result of `readPolicy` or of the last `publishPolicy`; undefined: there must be none.
   * @throws ClusterError "cluster/stale-policy" when another one was published since.
   */
  publishPolicy(policy: PolicyPointer, seen?: PublishedPolicy): Promise<PublishedPolicy>;
  /** Calls `onPolicy` with the current policy and each later one, the newest last; some in between may be left out. */
  watchPolicy(onPolicy: (policy: PublishedPolicy) => void, signal: AbortSignal): Promise<void>;

  /**
   * The newest checkpoint of a run, or undefined. From now on holders of earlier terms cannot replace it.
   * @param term of the caller's lease.
   * @throws ClusterError "cluster/stale-checkpoint" when a later holder of the lease wrote it.
   */
  takeCheckpoint(run: string, term: number): Promise<CheckpointPointer | undefined>;
  /**
   * Makes a checkpoint the newest of its run.
   * @returns the previous one.
   * @throws ClusterError "cluster/stale-checkpoint" when a later holder of the lease wrote that.
   */
  nameCheckpoint(pointer: CheckpointPointer): Promise<CheckpointPointer | undefined>;

  /** Present workers: registered, not left, and with a record within `presenceMs`. By id; 1,024 at most. */
  listWorkers(): Promise<WorkerInfo[]>;
  /** Calls `onWorkers` with the list now and after each change. */
  watchWorkers(onWorkers: (workers: WorkerInfo[]) => void, signal: AbortSignal): Promise<void>;

  /**
   * Waits until this holder has the lease, and renews it until it is released or lost. A holder that does not renew it
   * for `leaseMs` loses it, regardless of the machines' clocks.
   * @param holder name of the holder, for people; several may share one.
   * @param onWait called with the reason of the wait, and each time that it changes: a sentence for people.
   */
  acquireLease(holder: string, signal?: AbortSignal, onWait?: (reason: string) => void): Promise<Lease>;

  /**
   * Calls when the server lost its data: policy, records, jobs and blobs. Submitted jobs are queued again
   * automatically; the caller puts blobs again once `restored` resolves. That rejects when the bus cannot be set up
   * again.
   */
  watchLosses(onLoss: (loss: StoreLoss) => void, signal: AbortSignal): void;
  /** Calls with problems that no call reports, as `BusOptions.onProblem`. */
  watchProblems(onProblem: (problem: ClusterError) => void, signal: AbortSignal): void;

  readonly stats: Readonly<BusStats>;
  /**
   * Aborted when the bus is closed: by `close`, or by a server that shut this user out (its key was revoked, its JWT
   * expired); the reason is then a ClusterError "cluster/shut-out". An unreachable server closes nothing.
   */
  readonly closed: AbortSignal;
  /** Rejects submitted jobs, closes workers and leases, and disconnects. Never rejects. */
  close(): Promise<void>;
}

export interface BusOptions {
  /** Most submitted and unresolved jobs, at least 1; `submit` waits beyond it. Default: as many as the queue holds. */
  maxOutstanding?: number;
  /**
   * Gets problems that no call reports: a second result with another hash, an unreadable message, a server that does
   * not answer. Default: ignored.
   */
  onProblem?: (problem: ClusterError) => void;
}

/** Times that all members of a bus agree on. The first one to open it decides. */
export interface BusTimes {
  /** Milliseconds without a heartbeat after which a job is given to another worker. Default: 30,000. */
  ackWaitMs: number;
  /** Milliseconds without a heartbeat after which a worker is gone. Default: 20,000. */
  presenceMs: number;
  /** Milliseconds without a renewal after which a lease may be taken. Default: 15,000. */
  leaseMs: number;
}

export const defaultTimes: BusTimes = { ackWaitMs: 30_000, presenceMs: 20_000, leaseMs: 15_000 };

/** Most bytes of a result as JSON; larger values go into blobs. */
export const MAX_MESSAGE_BYTES = 512 * 1024;
/** Most bytes of a job as JSON: few, so that a queue of bounded size holds many jobs. */
export const MAX_JOB_BYTES = 64 * 1024;
