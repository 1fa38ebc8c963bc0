import { z } from "zod";

const beta = z.number().min(0).lt(1);

/** The optimizer and its schedule, for actor and critic. @param learningRate default learning rate. */
function makeOptimizerOptions(learningRate: number) {
  return z.strictObject({
    learningRate: z
      .number()
      .positive()
      .default(learningRate)
      .describe("Learning rate after the warm-up. With lora_rank 0 a rate above 1e-5 tends to ruin the model."),
    schedule: z
      .enum(["constant", "cosine"])
      .default("constant")
      .describe("constant, or cosine: the rate falls to min_lr_ratio times lr over the run."),
    warmupSteps: z
      .int()
      .min(-1)
      .default(-1)
      .describe(
        "Steps over which lr rises, the actor's counted from the end of trainer.critic_warmup; -1: set by lr_warmup_steps_ratio.",
      ),
    warmupStepsRatio: z
      .number()
      .min(0)
      .max(1)
      .default(0)
      .describe("The warm-up as a share of all steps; for the actor of those after trainer.critic_warmup."),
    minLrRatio: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .default(0)
      .transform((ratio) => ratio ?? 0)
      .describe("Rate at the start of warm-up and at the end of the cosine, as a share of lr."),
    numCycles: z.number().min(0).default(0.5).describe("Number of cycles of the cosine; half a cycle falls once."),
    weightDecay: z
      .number()
      .min(0)
      .default(0)
      .describe("AdamW's decay of weights, times the learning rate; norms and biases have none."),
    betas: z
      .tuple([beta, beta])
      .default([0.9, 0.999])
      .describe("AdamW's decay rates of the first and the second moment."),
    maxGradNorm: z
      .number()
      .min(0)
      .default(1)
      .describe("Largest norm of the gradient, which is scaled down to it; 0: no limit."),
    shuffle: z
      .boolean()
      .default(true)
      .describe("Shuffle the prompts of a step before each pass, so that mini-batches differ from pass to pass."),
  });
}

/** Updates of the policy. */
export const updateOptions = makeOptimizerOptions(1e-4).extend({
  miniBatchSize: z.int().positive().default(8).describe("Prompts in one update."),
  microBatchTokens: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Tokens of a micro-batch, padding included; null: chosen by model and memory. The result is the same."),
  epochs: z.int().positive().default(1).describe("Passes over a step's batch."),
  skipZeroAdvantage: z
    .boolean()
    .default(true)
    .describe(
      "Leave conversations without advantage out of evaluation and update, if they have no gradient. The result is the same, at less cost. false: evaluate them, as other frameworks do; actor/entropy, actor/ppo_kl, training/rollout_probs_diff_* and rollout_corr/* then cover the whole batch, and a batch without any advantage still takes an optimizer step.",
    ),
  oldLogprobs: z
    .enum(["auto", "separate", "compare"])
    .default("auto")
    .describe(
      "Source of the logprobs before the update. auto: the update's own forward pass, if a step makes one update and nothing needs them earlier; else the sampler's, if a pass would give the same bits (docs/determinism.md); else a separate pass. separate: always a separate pass. compare: a separate pass, and training/old_log_prob_diff_max is its greatest difference to the first update's pass.",
    ),
  updateKlRatio: z
    .number()
    .min(0)
    .max(1)
    .default(1 / 16)
    .describe(
      "Share of a step's evaluated conversations that is scored again after its updates. actor/update_kl then measures how far the updates moved the policy. At least one conversation; 0: none. Training does not depend on it.",
    ),
});

/** Updates of a critic; null fields take the actor's values. */
export const criticUpdateOptions = makeOptimizerOptions(1e-3).extend({
  cliprangeValue: z
    .number()
    .positive()
    .default(0.5)
    .describe("Clip range of a value: from the value before the update minus this to that plus this."),
});

export type UpdateSettings = z.infer<typeof updateOptions>;
export type CriticUpdateSettings = z.infer<typeof criticUpdateOptions>;
