import { z } from "zod";
import type { JobKind } from "../bus/job-bus.js";
import { packedSchema, sha256 } from "./packed.js";

/** Names of workers that a job may say; the results of others that are shut out are refused when they come. */
export const MOST_AVOIDED = 200;

/** What a worker says it lacks that has not heard of a training yet. */
export const WITHOUT_TRAINING = "waits for a training";

/** What every job of a training says. The rest of it is `work`, packed. */
export const payloadSchema = z.strictObject({
  /** SHA-256 of the run's description (`RunDescription`): model, config, environment. */
  run: sha256,
  /** SHA-256 of the trained tensors that it is done with (`readWeights`). */
  weights: sha256,
  /** Optimizer steps behind those weights. */
  version: z.int().min(0),
  /** The class of bits that it must be done in; null: any. */
  class: z.string().max(64).nullable(),
  /** Workers that are not to do it: they have it in hand, gave what cannot be used, or get nothing any more. Others make another job. */
  avoid: z.array(z.string().max(64)).max(MOST_AVOIDED),
  /** How often the bus had lost all that it had when this was given out. Another number is another job. */
  losses: z.int().min(0),
  work: packedSchema,
});
export type JobPayload = z.infer<typeof payloadSchema>;

/** What a job gives that its payload alone decides, packed. */
const valueSchema = z.strictObject({ result: packedSchema });
export type JobValue = z.infer<typeof valueSchema>;

/** What comes with a result, and differs from worker to worker. */
export const metaSchema = z.object({
  class: z.string().max(64),
  /** What the work took, without waiting for weights. */
  seconds: z.number().nonnegative(),
  /** Of a conversation: metrics and timeline, packed. */
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
