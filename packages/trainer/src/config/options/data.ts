import { rowSamplers } from "@cria/rollout";
import { z } from "zod";
import { files } from "../sections/lists.js";

/** A user's class that reads files of rows. */
export const datasetClassOptions = z.strictObject({
  path: z
    .string()
    .nullable()
    .default(null)
    .describe("File of a class that extends RolloutDataset; TypeScript needs no build step. null: none."),
  name: z.string().nullable().default(null).describe("The class that it exports."),
});

/** The sampler that chooses the rows of each step. */
export const samplerOptions = z.strictObject({
  path: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "File of a class or function that picks the rows of each step (docs/tasks.md); TypeScript needs no build step. null: class_name is a built-in one.",
    ),
  name: z.string().nullable().default(null).meta({
    description:
      "What it exports, or a built-in sampler: difficulty asks rows less often that always or never succeed. null: passes over all rows, in an order by shuffle and seed.",
    examples: rowSamplers.names(),
  }),
  kwargs: z
    .record(z.string(), z.unknown())
    .default({})
    .describe(
      "What the sampler is given: of difficulty rate (0.5), least (0.1) and samples (even; harder: rows that seldom succeed get more of the step's conversations).",
    ),
});

/** Rows, their columns and their order. */
export const dataOptions = z.strictObject({
  trainFiles: files.describe(
    "Rows to train on: Parquet, JSONL or JSON files, or sets of a hub: hf:<owner>/<set>/<config>/<split>.",
  ),
  valFiles: files.nullable().default(null).describe("Rows to validate on; null: no validation."),
  map: z
    .string()
    .nullable()
    .default(null)
    .describe(
      '"./module.ts#export": a function that makes a row of each record of the files, (record) => ({ prompt, data_source, ... }), or null to leave it out; for sets whose columns have other names.',
    ),
  batchSize: z.int().positive().default(16).describe("Prompts of one step."),
  promptKey: z.string().default("prompt").describe("Column of the messages."),
  rewardFnKey: z.string().default("data_source").describe("Column that says which reward judges a row."),
  imageKey: z
    .string()
    .default("images")
    .describe(
      "Column of images, which stand in the messages where their texts say <image>: { bytes }, { path } from the file's folder, a path, or { data, mimeType }.",
    ),
  videoKey: z.string().default("videos").describe("Column of videos, which must be empty: policies see images alone."),
  filterOverlongPrompts: z
    .boolean()
    .default(false)
    .describe("Leave out rows whose prompt has more than max_prompt_length tokens."),
  cacheDir: z
    .string()
    .nullable()
    .default(null)
    .describe("Folder of cached prompt lengths; null: ~/.cache/cria, or below XDG_CACHE_HOME."),
  needToolsKwargs: z
    .boolean()
    .default(false)
    .describe(
      "Conversations see only the tools that tools_kwargs of their row names; extra_info.need_tools_kwargs of a row goes before.",
    ),
  shuffle: z.boolean().default(true).describe("Draw rows in another order in each epoch."),
  seed: z.int().default(0).describe("Seed of that order, and of the rows that train_max_samples takes."),
  trainMaxSamples: z
    .int()
    .min(-1)
    .default(-1)
    .describe("Rows to train on; -1: all. With shuffle, so many by data.seed; else the first ones."),
  valMaxSamples: z.int().min(-1).default(-1).describe("Rows to validate on, the first ones; -1: all."),
  templateKwargs: z
    .record(z.string(), z.unknown())
    .default({})
    .describe("Variables for the chat template, for example { enable_thinking: false }."),
  allowControlTokens: z
    .boolean()
    .default(false)
    .describe(
      "false: what users, tools and interactions say never becomes a control token (a token that the GGUF marks as one, as <|im_end|>), so that their text cannot end a turn or speak as the assistant. true: it is read with them, as verl and Hugging Face read it.",
    ),
  datasetClass: datasetClassOptions.prefault({}),
  sampler: samplerOptions.prefault({}),
});

export type DataOptions = z.infer<typeof dataOptions>;
