import { rowSamplers } from "@cria/rollout";
import { z } from "zod";
import { files } from "../sections/lists.js";
import { demonstrationOptions } from "./demonstrations.js";

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
      "File of a class or function that picks the rows of each step (docs/row-samplers.md); TypeScript needs no build step. null: class_name is a built-in one.",
    ),
  name: z.string().nullable().default(null).meta({
    description:
      "Name of the module's export, or of a built-in sampler: difficulty samples a row less often if it always or never succeeds. null: pass over all rows, in an order set by shuffle and seed.",
    examples: rowSamplers.names(),
  }),
  kwargs: z
    .record(z.string(), z.unknown())
    .default({})
    .describe(
      "Options of the sampler. difficulty has rate (default 0.5), least (default 0.1) and samples (even, the default; harder: rows that seldom succeed get more of the step's conversations).",
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
  rewardFnKey: z.string().default("data_source").describe("Column with the name of the reward for a row."),
  imageKey: z
    .string()
    .default("images")
    .describe(
      "Column of images, which replace <image> in the texts of the messages, in order: { bytes }, { path } from the file's folder, a path, or { data, mimeType }.",
    ),
  videoKey: z.string().default("videos").describe("Column of videos. It must be empty: policies see only images."),
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
      "Conversations see only the tools that tools_kwargs of their row names; extra_info.need_tools_kwargs of a row overrides this.",
    ),
  shuffle: z.boolean().default(true).describe("Draw rows in another order in each epoch."),
  seed: z.int().default(0).describe("Seed of that order, and of the rows that train_max_samples takes."),
  trainMaxSamples: z
    .int()
    .min(-1)
    .default(-1)
    .describe(
      "Number of rows to train on; -1: all. With shuffle, data.seed draws the rows; otherwise the first ones are taken.",
    ),
  valMaxSamples: z.int().min(-1).default(-1).describe("Rows to validate on, the first ones; -1: all."),
  templateKwargs: z
    .record(z.string(), z.unknown())
    .default({})
    .describe("Variables for the chat template, for example { enable_thinking: false }."),
  allowControlTokens: z
    .boolean()
    .default(false)
    .describe(
      "false: text of users, tools and interactions never becomes a control token such as <|im_end|>. Their text cannot end a turn or speak as the assistant. true: control tokens in their text are read as such, as in verl and Hugging Face.",
    ),
  datasetClass: datasetClassOptions.prefault({}),
  sampler: samplerOptions.prefault({}),
  demonstrations: demonstrationOptions.prefault({}),
});

export type DataOptions = z.infer<typeof dataOptions>;
