import { z } from "zod";

/** Settings for sharing work with other machines. No effect without a bus: `cria train --bus`, `train({ bus })`. */
export const clusterSection = z.strictObject({
  audit: z
    .number()
    .min(0)
    .max(1)
    .default(0.01)
    .describe(
      "Share of the workers' results that the coordinator computes again; a worker whose result differs is shut out.",
    ),
  take_part: z
    .boolean()
    .default(true)
    .describe(
      "true: the coordinator does jobs beside the workers. It always does jobs that workers fail at, and all jobs if there is no worker of its class.",
    ),
  wait_for_workers: z.int().min(0).default(0).describe("Workers to wait for before the first step."),
  silence_s: z
    .number()
    .min(0.5)
    .default(20)
    .describe(
      "Seconds without a sign of life after which a worker or coordinator counts as lost. The process that opens the bus first sets it for all. A job that takes this long, and three times as long as most, is also started elsewhere.",
    ),
  max_tries: z
    .int()
    .min(1)
    .max(100)
    .default(3)
    .describe("Number of workers that may fail at a job, or be lost with it, before the coordinator does it."),
  job_timeout_s: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe("Seconds after which an unfinished job is withdrawn, and the coordinator does it. null: no limit."),
  other_classes: z
    .enum(["rollout", "refuse"])
    .default("rollout")
    .describe(
      "Jobs of workers whose bits differ from the coordinator's, by another kernel or type: conversations or none. Their conversations are importance-weighted and counted in the metrics. They never compute gradients or logprobs.",
    ),
  share_model: z
    .boolean()
    .default(true)
    .describe(
      "true: workers without the model download it from the bus. The bus keeps it as long as its limits allow.",
    ),
  share_checkpoints: z
    .boolean()
    .default(false)
    .describe(
      "true: store each checkpoint in the bus, which keeps the newest. A coordinator with an older checkpoint, or none, resumes from it. The training waits until it is stored.",
    ),
});
