import { z } from "zod";

const count = z.number().int().nonnegative();
const byKind = z.object({ rollout: count, score: count, gradient: count });

/** How `cluster` of live.json stands in the file. */
export const clusterViewSchema = z.object({
  /** Address of the bus, without secrets. */
  bus: z.string(),
  /** The process that coordinates: its host and process id. */
  coordinator: z.string(),
  /** Grows with each new coordinator of the bus. */
  term: count,
  /** Class of the coordinator's own bits. */
  class: z.string(),
  policy: z.object({
    /** Optimizer steps behind it. */
    version: count,
    bytes: count,
    /** What it took to send it, in seconds. */
    seconds: z.number().nonnegative(),
  }),
  /** Workers that were seen in this run; those that left stay, as gone. By id. */
  workers: z.array(
    z.object({
      id: z.string(),
      host: z.string(),
      class: z.string(),
      /** "failing": it failed too often, and rests. "stuck": its last jobs were done sooner by others, and it gets no more. */
      state: z.enum(["ready", "failing", "stuck", "draining", "shut-out", "gone"]),
      /** Why it is shut out, or what it lacks; null: nothing. */
      reason: z.string().nullable(),
      slots: byKind,
      /** Jobs in hand. */
      doing: byKind,
      /** Results taken by this coordinator. */
      done: byKind,
      failed: count,
      /** Why its last job failed, after the kind; null: none did. */
      lastFailure: z.string().nullable().default(null),
      /** Seconds since the oldest of its jobs in hand was begun. */
      oldest: z.number().nonnegative().default(0),
      declined: count,
      /** Results a minute, over the last minute. */
      rate: z.number().nonnegative(),
      /** Results that were computed again here. */
      audits: z.object({ passed: count, failed: count }),
    }),
  ),
  /** Jobs done by the coordinator itself. */
  here: byKind,
  /** `waiting`: for a free worker; `abandoned`: given up after several tries; `conflicts`: second results that differ. */
  jobs: z.object({ outstanding: count, waiting: count, redelivered: count, abandoned: count, conflicts: count }),
  /** Bytes since the run began. */
  traffic: z.object({ policy: count, gradients: count, jobs: count }),
});

/** A training on many machines, as its coordinator sees it. */
export type ClusterView = z.infer<typeof clusterViewSchema>;
