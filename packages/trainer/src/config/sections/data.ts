import { z } from "zod";
import { files } from "./lists.js";
import { imageKeys } from "./vision.js";

export const dataSection = z.strictObject({
  train_files: files.describe(
    "Rows to train on: Parquet, JSONL or JSON files, or sets of a hub: hf:<owner>/<set>/<config>/<split>.",
  ),
  val_files: files.nullable().default(null).describe("Rows to validate on; null: no validation."),
  map: z
    .string()
    .nullable()
    .default(null)
    .describe(
      '"./module.ts#export": a function that makes a row of each record of the files, (record) => ({ prompt, data_source, ... }), or null to leave it out; for sets whose columns have other names.',
    ),
  train_batch_size: z.int().positive().default(16).describe("Prompts of one step."),
  prompt_key: z.string().default("prompt").describe("Column of the messages."),
  reward_fn_key: z.string().default("data_source").describe("Column that says which reward judges a row."),
  ...imageKeys,
  video_key: z.string().default("videos").describe("Column of videos, which must be empty: policies see images alone."),
  max_prompt_length: z.int().positive().default(512).describe("Most tokens of a prompt."),
  max_response_length: z.int().positive().default(512).describe("Most tokens after the prompt, over all turns."),
  filter_overlong_prompts: z
    .boolean()
    .default(false)
    .describe("Leave out rows whose prompt has more than max_prompt_length tokens."),
  truncation: z
    .enum(["error", "left", "right", "middle"])
    .default("error")
    .describe("What happens to longer prompts otherwise: an error, or the side that is cut away."),
  cache_dir: z
    .string()
    .nullable()
    .default(null)
    .describe("Folder of cached prompt lengths; null: ~/.cache/cria, or below XDG_CACHE_HOME."),
  need_tools_kwargs: z
    .boolean()
    .default(false)
    .describe(
      "Conversations see only the tools that tools_kwargs of their row names; extra_info.need_tools_kwargs of a row goes before.",
    ),
  return_full_prompt: z
    .boolean()
    .default(false)
    .describe("The rendered prompt goes to reward functions (extraInfo.full_prompt) and into dumps."),
  shuffle: z.boolean().default(true).describe("Draw rows in another order in each epoch."),
  seed: z.int().default(0).describe("Seed of that order, and of the rows that train_max_samples takes."),
  train_max_samples: z
    .int()
    .min(-1)
    .default(-1)
    .describe("Rows to train on; -1: all. With shuffle, so many by data.seed; else the first ones."),
  val_max_samples: z.int().min(-1).default(-1).describe("Rows to validate on, the first ones; -1: all."),
  apply_chat_template_kwargs: z
    .record(z.string(), z.unknown())
    .default({})
    .describe("Variables for the chat template, for example { enable_thinking: false }."),
  allow_control_tokens: z
    .boolean()
    .default(false)
    .describe(
      "false: what users, tools and interactions say never becomes a control token (a token that the GGUF marks as one, as <|im_end|>), so that their text cannot end a turn or speak as the assistant. true: it is read with them, as verl and Hugging Face read it.",
    ),
  custom_cls: z
    .strictObject({
      path: z
        .string()
        .nullable()
        .default(null)
        .describe("File of a class that extends RolloutDataset; TypeScript needs no build step. null: none."),
      name: z.string().nullable().default(null).describe("The class that it exports."),
    })
    .prefault({}),
});
