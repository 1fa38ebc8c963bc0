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
      "Whether the coordinator does jobs itself, beside the workers. Without any worker of its class it always does, and what workers fail at.",
    ),
  wait_for_workers: z.int().min(0).default(0).describe("Workers to wait for before the first step."),
  silence_s: z
    .number()
    .min(0.5)
    .default(20)
    .describe(
      "Seconds without a sign of life after which a worker or a coordinator is taken for lost. Whoever opens the bus first decides for all. A job that takes so long, and three times as long as most, is begun a second time elsewhere.",
    ),
  max_tries: z
    .int()
    .min(1)
    .max(100)
    .default(3)
    .describe(
      "How many workers may fail at a job before the coordinator does it itself. A conversation that lost each of so many workers is given up: rollout.on_failure decides about it.",
    ),
  job_timeout_s: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe("Seconds after which a job that nobody has finished is withdrawn and counts as given up; null: none."),
  other_classes: z
    .enum(["rollout", "refuse"])
    .default("rollout")
    .describe(
      "What workers do whose bits differ from the coordinator's (another kernel or type): hold conversations, which are importance-weighted and counted in the metrics, or nothing. Gradients and logprobs are never theirs.",
    ),
  share_model: z
    .boolean()
    .default(true)
    .describe("Whether workers that lack the model get it from the bus, which keeps it as long as its bounds allow."),
  share_checkpoints: z
    .boolean()
    .default(false)
    .describe(
      "Whether each checkpoint is put into the bus, which keeps the newest: a coordinator whose run folder has an older one or none goes on from it. The training waits for it.",
    ),
});
