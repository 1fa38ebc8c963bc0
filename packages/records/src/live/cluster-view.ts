import { z } from "zod";

const count = z.number().int().nonnegative();
/** Numbers of the three kinds of jobs: conversations, logprobs, gradients. */
const byKind = z.object({ rollout: count, score: count, gradient: count });

/** Form of `cluster` in live.json. */
export const clusterViewSchema = z.object({
  /** Address of the bus, without secrets. */
  bus: z.string(),
  /** Host and process id of the coordinator. */
  coordinator: z.string(),
  /** Grows with each new coordinator of the bus. */
  term: count,
  /** Class of the coordinator's own bits. */
  class: z.string(),
  policy: z.object({
    /** Number of optimizer steps before the weights that were sent last. */
    version: count,
    bytes: count,
    /** Duration of sending it, in seconds. */
    seconds: z.number().nonnegative(),
  }),
  /** Workers that were seen in this run, by id; those that left stay, as gone. */
  workers: z.array(
    z.object({
      id: z.string(),
      host: z.string(),
      /** Workers of one class compute the same bits. */
      class: z.string(),
      /**
       * ready: takes jobs. failing: it failed too often, and pauses. stuck: others finished its last jobs sooner, and
       * it gets no more. draining: finishes the jobs in hand. shut-out: gets no more jobs, because its results were
       * wrong. gone: left, or silent.
       */
      state: z.enum(["ready", "failing", "stuck", "draining", "shut-out", "gone"]),
      /** Reason of being shut out, or missing parts; null: neither. */
      reason: z.string().nullable(),
      /** Jobs that it does at once. */
      slots: byKind,
      /** Jobs in hand. */
      doing: byKind,
      /** Results that this coordinator took. */
      done: byKind,
      failed: count,
      /** Kind and reason of its last failed job; null: none failed. */
      lastFailure: z.string().nullable().default(null),
      /** Seconds since the oldest of its jobs in hand was begun. */
      oldest: z.number().nonnegative().default(0),
      declined: count,
      /** Results per minute, over the last minute. */
      rate: z.number().nonnegative(),
      /** Results that were computed again here. */
      audits: z.object({ passed: count, failed: count }),
    }),
  ),
  /** Jobs done by the coordinator itself. */
  here: byKind,
  /**
   * `waiting`: for a free worker; `abandoned`: lost several times, and done by the coordinator; `conflicts`: second
   * results that differ.
   */
  jobs: z.object({ outstanding: count, waiting: count, redelivered: count, abandoned: count, conflicts: count }),
  /** Bytes since the run began. */
  traffic: z.object({ policy: count, gradients: count, jobs: count }),
});

/** A training on many machines, as its coordinator sees it. */
export type ClusterView = z.infer<typeof clusterViewSchema>;

export type CountsByKind = z.infer<typeof byKind>;

/** A worker as the coordinator sees it. Its texts come from another machine. */
export type WorkerView = ClusterView["workers"][number];
export type WorkerState = WorkerView["state"];
