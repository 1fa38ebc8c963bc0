import { z } from "zod";
import { targetModulesSchema } from "./target-modules.js";

const files = z.union([z.string(), z.array(z.string())]).transform((value) => (Array.isArray(value) ? value : [value]));

/** Config of `cria sft`. */
const beta = z.number().min(0).lt(1);

export const sftConfigSchema = z.strictObject({
  model: z.strictObject({
    path: z.string(),
    /** 0: full training (F32 models). */
    lora_rank: z.int().min(0).default(0),
    lora_alpha: z.number().positive().default(16),
    target_modules: targetModulesSchema.default("all-linear"),
  }),
  data: z.strictObject({
    /** JSONL, JSON or Parquet with a column of messages and, optionally, one of tools. */
    train_files: files,
    messages_key: z.string().default("messages"),
    tools_key: z.string().default("tools"),
    train_batch_size: z.int().positive().default(32),
    max_length: z.int().positive().default(1024),
    /** true: text of user and tool messages may become control tokens, as `<|im_end|>`; see the config of `cria train`. */
    allow_control_tokens: z.boolean().default(false),
  }),
  optim: z
    .strictObject({
      lr: z.number().positive().default(1e-4),
      betas: z.tuple([beta, beta]).default([0.9, 0.98]),
      weight_decay: z.number().min(0).default(0.05),
      lr_warmup_steps: z.int().min(0).default(50),
      /** Share of the learning rate that is left at the end of the cosine. */
      min_lr_ratio: z.number().min(0).max(1).default(0.05),
      clip_grad: z.number().min(0).default(1),
    })
    .prefault({}),
  trainer: z.strictObject({
    total_training_steps: z.int().positive(),
    seed: z.int().default(0),
    /** Where the model runs: auto is a GPU when all that it needs is there, else the CPU. */
    device: z.enum(["auto", "cpu", "cuda"]).default("auto"),
    /** Native threads; null: all cores. */
    threads: z.int().positive().nullable().default(null),
    /** A model GGUF, or with LoRA an adapter GGUF. */
    output_path: z.string(),
  }),
});

export type SftConfig = z.infer<typeof sftConfigSchema>;
