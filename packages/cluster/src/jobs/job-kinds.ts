import { z } from "zod";
import type { JobKind } from "../bus/job-bus.js";
import { packedSchema, sha256 } from "./packed.js";

/** Most workers that a job may exclude; results of further shut-out ones are refused on arrival. */
export const MOST_AVOIDED = 200;

/** The text in `lacks` of a worker without a training. */
export const WITHOUT_TRAINING = "waits for a training";

/** Fields of every job of a training. The rest of the payload is `work`, packed. */
export const payloadSchema = z.strictObject({
  /** SHA-256 of the run's description (`RunDescription`): model, config, user code. */
  run: sha256,
  /** SHA-256 of the trained tensors that the job uses (`readWeights`). */
  weights: sha256,
  /** Optimizer steps when those weights were first sent: newer weights have no smaller number. */
  version: z.int().min(0),
  /** The class of bits in which it must be done; null: any. */
  class: z.string().max(64).nullable(),
  /**
   * Workers that must not do it: they have it in hand, gave unusable results, get no more jobs, or held the
   * conversations that it checks. Other workers here make another job.
   */
  avoid: z.array(z.string().max(64)).max(MOST_AVOIDED),
  /** Number of the bus's losses before this job. Another number makes another job. */
  losses: z.int().min(0),
  work: packedSchema,
});
export type JobPayload = z.infer<typeof payloadSchema>;

/** A job's result, which follows from its payload, packed. */
const valueSchema = z.strictObject({ result: packedSchema });
export type JobValue = z.infer<typeof valueSchema>;

/** Data with a result that differs from worker to worker. */
export const metaSchema = z.object({
  class: z.string().max(64),
  /** Duration of the work, without waiting for weights. */
  seconds: z.number().nonnegative(),
  /** For a conversation: metrics and timeline, packed. */
  record: packedSchema.optional(),
});
export type JobMeta = z.infer<typeof metaSchema>;

/** `work`: ConversationWork; `result`: UnjudgedTrajectory without metrics and timeline. */
export const rolloutJob: JobKind<JobPayload, JobValue> = {
  name: "rollout",
  payload: payloadSchema,
  value: valueSchema,
};
/** `work`: ScoreShard; `result`: ShardScores. */
export const scoreJob: JobKind<JobPayload, JobValue> = { name: "score", payload: payloadSchema, value: valueSchema };
/** `work`: GradientWork; `result`: ShardGradient. */
export const gradientJob: JobKind<JobPayload, JobValue> = {
  name: "gradient",
  payload: payloadSchema,
  value: valueSchema,
};
