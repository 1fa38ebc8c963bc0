import { z } from "zod";
import { folderName } from "./options/run.js";
import { files } from "./sections/lists.js";
import { targetModulesSchema } from "./sections/target-modules.js";
import { trainerSection } from "./sections/trainer.js";
import { imageKeys, visionKeys } from "./sections/vision.js";

const beta = z.number().min(0).lt(1);

const model = z.strictObject({
  path: z.string().describe("The model to train: a GGUF."),
  ...visionKeys,
  lora_rank: z
    .int()
    .min(0)
    .default(0)
    .describe("Rank of the LoRA adapter that is trained; 0: full training, of an F32 model."),
  lora_alpha: z.number().positive().default(16).describe("The adapter is scaled by lora_alpha / lora_rank."),
  target_modules: targetModulesSchema
    .default("all-linear")
    .describe(
      "Layers that the adapter changes: all-linear, or a list by PEFT's names (q_proj) or llama.cpp's (attn_q).",
    ),
});

const data = z.strictObject({
  train_files: files.describe(
    "Rows to train on, JSONL, JSON or Parquet: a conversation a row, in a column of messages and, optionally, one of tools.",
  ),
  val_files: files
    .nullable()
    .default(null)
    .describe("Conversations that are not trained on; their loss is measured. null: none."),
  map: z
    .string()
    .nullable()
    .default(null)
    .describe(
      '"./module.ts#export": a function that makes a conversation of each record of the files, (record) => ({ messages, tools? }), or null to leave it out; for sets whose columns have other names.',
    ),
  keep: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "Filter of conversations in dumps (rollouts/<step>.jsonl), for example 'reward >= 1 && !truncated'. null: all conversations that ended by themselves.",
    ),
  messages_key: z.string().default("messages").describe("Column of the messages."),
  ...imageKeys,
  tools_key: z.string().default("tools").describe("Column of the tools that a conversation sees."),
  train_batch_size: z.int().positive().default(32).describe("Conversations of one step."),
  group_by_length: z
    .boolean()
    .default(true)
    .describe(
      "true: conversations of a batch are of similar length, so that little is padded. false: batches are drawn at random, for sets whose kinds of conversations differ in length: grouped, each batch would be of one kind.",
    ),
  max_length: z
    .int()
    .positive()
    .default(1024)
    .describe("Most tokens of a conversation; longer ones are left out, and counted."),
  allow_control_tokens: z
    .boolean()
    .default(false)
    .describe(
      "true: text of user and tool messages may become control tokens, as <|im_end|>; see the same key of `cria train`.",
    ),
});

const optim = z.strictObject({
  lr: z.number().positive().default(1e-4).describe("Learning rate after the warm-up."),
  betas: z.tuple([beta, beta]).default([0.9, 0.98]).describe("AdamW's decay rates of the first and the second moment."),
  weight_decay: z
    .number()
    .min(0)
    .default(0.05)
    .describe("AdamW's decay of weights, times the learning rate; norms and biases have none."),
  lr_scheduler_type: z
    .enum(["constant", "cosine", "cosine_from_start"])
    .default("cosine")
    .describe(
      "constant; cosine: it falls once the warm-up is over; cosine_from_start: it falls from step 1, and the warm-up is a factor.",
    ),
  lr_warmup_steps: z.int().min(-1).default(-1).describe("Steps over which lr rises; -1: set by lr_warmup_steps_ratio."),
  lr_warmup_steps_ratio: z.number().min(0).max(1).default(0.1).describe("The warm-up as a share of all steps."),
  min_lr_ratio: z.number().min(0).max(1).default(0.05).describe("Share of lr that is left at the end of a cosine."),
  num_cycles: z.number().min(0).default(0.5).describe("Number of cycles of a cosine; half a cycle falls once."),
  clip_grad: z
    .number()
    .min(0)
    .default(1)
    .describe("Largest norm of the gradient, which is scaled down to it; 0: no limit."),
});

const trainer = trainerSection
  .pick({
    experiment_name: true,
    default_local_dir: true,
    total_epochs: true,
    total_training_steps: true,
    save_freq: true,
    save_minutes: true,
    max_actor_ckpt_to_keep: true,
    resume_mode: true,
    resume_from_path: true,
    test_freq: true,
    val_before_train: true,
    device: true,
    threads: true,
    logger: true,
  })
  .extend({
    project_name: folderName
      .default("sft")
      .describe("The run folder is <default_local_dir>/<project_name>/<experiment_name>."),
    seed: z.int().default(0).describe("Decides the order of the conversations, and how a new adapter begins."),
    output_path: z
      .string()
      .nullable()
      .default(null)
      .describe(
        "Additional path for the trained GGUF: a model, or with LoRA an adapter. null: only the run folder has it.",
      ),
  });

/** Config of `cria sft`: names as in the config of `cria train`. The meaning of each key is in its `.describe()`. */
export const sftConfigSchema = z.strictObject({
  model,
  data,
  optim: optim.prefault({}),
  trainer: trainer.prefault({}),
});

export type SftConfig = z.infer<typeof sftConfigSchema>;
