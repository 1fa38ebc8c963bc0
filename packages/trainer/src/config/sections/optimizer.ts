import { z } from "zod";

const beta = z.number().min(0).lt(1);

/** Keys of `optim`, which actor and critic share. @param lr its default. */
export function makeOptimizer(lr: number) {
  return z
    .strictObject({
      lr: z
        .number()
        .positive()
        .default(lr)
        .describe("Learning rate after the warm-up. With lora_rank 0 a rate above 1e-5 tends to ruin the model."),
      lr_scheduler_type: z
        .enum(["constant", "cosine"])
        .default("constant")
        .describe("constant, or cosine: the rate falls to min_lr_ratio times lr over the run."),
      lr_warmup_steps: z
        .int()
        .min(-1)
        .default(-1)
        .describe(
          "Steps over which lr rises, the actor's counted from the end of trainer.critic_warmup; -1: lr_warmup_steps_ratio says it.",
        ),
      lr_warmup_steps_ratio: z
        .number()
        .min(0)
        .max(1)
        .default(0)
        .describe("The warm-up as a share of all steps; for the actor of those after trainer.critic_warmup."),
      min_lr_ratio: z
        .number()
        .min(0)
        .max(1)
        .nullable()
        .default(0)
        .transform((ratio) => ratio ?? 0)
        .describe("Of cosine: where it begins to rise and where it ends, as a share of lr."),
      num_cycles: z.number().min(0).default(0.5).describe("Of cosine: number of cycles; half a cycle falls once."),
      weight_decay: z
        .number()
        .min(0)
        .default(0)
        .describe("AdamW's decay of weights, times the learning rate; norms and biases have none."),
      betas: z
        .tuple([beta, beta])
        .default([0.9, 0.999])
        .describe("AdamW's decay rates of the first and the second moment."),
    })
    .prefault({});
}
