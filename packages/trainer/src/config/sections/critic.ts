import { aggregations } from "@cria/algorithms";
import { z } from "zod";
import { criticUpdateOptions } from "../options/updates.js";
import { makeOptimizer } from "./optimizer.js";
import { targetModulesSchema } from "./target-modules.js";

const { shape: updates } = criticUpdateOptions;

const model = z.strictObject({
  path: z.string().nullable().default(null).describe("The backbone, a GGUF; null: the actor's."),
  lora_rank: z
    .int()
    .min(0)
    .nullable()
    .default(null)
    .describe("Rank of the critic's LoRA adapter; 0: full training; null: as the actor's."),
  lora_alpha: z.number().positive().nullable().default(null).describe("null: as the actor's."),
  target_modules: targetModulesSchema
    .nullable()
    .default(null)
    .describe("Layers that the critic's adapter changes; null: as the actor's."),
});

/** Settings of the critic, for estimators that need values (gae). Null fields take the actor's values. */
export const criticSection = z.strictObject({
  model: model.prefault({}),
  optim: makeOptimizer(updates),
  ppo_mini_batch_size: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Prompts in one update; null: the actor's."),
  ppo_max_token_len: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Tokens of a micro-batch, padding included; null: the actor's."),
  ppo_epochs: z.int().positive().nullable().default(null).describe("Passes over a step's batch; null: the actor's."),
  shuffle: updates.shuffle,
  cliprange_value: updates.cliprangeValue,
  loss_agg_mode: z
    .string()
    .default("token-mean")
    .meta({ description: "Aggregation of the tokens' losses into one loss.", examples: aggregations.names() }),
  grad_clip: updates.maxGradNorm,
});
