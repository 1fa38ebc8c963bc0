/** Numbers of the three kinds of jobs: conversations, logprobs, gradients. */
export interface CountsByKind {
  rollout: number;
  score: number;
  gradient: number;
}

/**
 * ready: takes jobs. failing: it failed too often, and pauses. stuck: others finished its last jobs sooner, and it gets
 * no more. draining: finishes the jobs in hand. shut-out: gets no more jobs, because its results were wrong. gone:
 * left, or silent.
 */
export type WorkerState = "ready" | "failing" | "stuck" | "draining" | "shut-out" | "gone";

/** A worker as the coordinator sees it. Its texts come from another machine. */
export interface WorkerView {
  id: string;
  host: string;
  /** Workers of one class compute the same bits. */
  class: string;
  state: WorkerState;
  /** Reason of being shut out, or missing parts; null: neither. */
  reason: string | null;
  /** Jobs that it does at once. */
  slots: CountsByKind;
  /** Jobs in hand. */
  doing: CountsByKind;
  /** Results that the coordinator took. */
  done: CountsByKind;
  failed: number;
  /** Kind and reason of its last failed job; null: none failed. */
  lastFailure: string | null;
  /** Seconds since the oldest of its jobs in hand was begun. */
  oldest: number;
  declined: number;
  /** Results per minute, over the last minute. */
  rate: number;
  /** Results that the coordinator recomputed: how many were equal and how many differed. */
  audits: { passed: number; failed: number };
}

/** `cluster` of a live state: a training on many machines, as its coordinator sees it. */
export interface ClusterView {
  /** Address of the bus, without secrets. */
  bus: string;
  /** The process that coordinates: its host and process id. */
  coordinator: string;
  /** Grows with each new coordinator of the bus. */
  term: number;
  /** Class of the coordinator's bits. */
  class: string;
  /** The weights that were sent last: their optimizer steps, bytes, and the seconds of the transfer. */
  policy: { version: number; bytes: number; seconds: number };
  /** Workers that were seen in this run, by id; those that left stay, as gone. */
  workers: WorkerView[];
  /** Jobs that the coordinator did itself. */
  here: CountsByKind;
  /**
   * `waiting`: for a free worker; `abandoned`: lost several times, and done by the coordinator; `conflicts`: second
   * results that differ.
   */
  jobs: { outstanding: number; waiting: number; redelivered: number; abandoned: number; conflicts: number };
  /** Bytes since the run began. */
  traffic: { policy: number; gradients: number; jobs: number };
}
