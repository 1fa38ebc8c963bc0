import { devices } from "@cria/core";
import { z } from "zod";

/** A name that becomes a subfolder. */
export const folderName = z
  .string()
  .refine(
    (name) => !/^[/\\]|^[A-Za-z]:|\0/.test(name) && !name.split(/[/\\]/).some((part) => /^(\s*|\.\.?)$/.test(part)),
    "a name of a folder, which may have folders in it, but does not lead out of the one above",
  );

/** Place, length and means of a run. */
export const runOptions = z.strictObject({
  name: folderName.default("default").describe("The run's name in its project."),
  folder: z.string().default("runs").describe("Parent of run folders; the default is in the working directory."),
  epochs: z.int().positive().default(1).describe("Passes over the rows, unless total_training_steps is given."),
  steps: z.int().positive().nullable().default(null).describe("Steps to train; null: those of total_epochs."),
  seed: z.int().default(0).describe("Seed of sampling, and of a new adapter's initial weights."),
  journal: z
    .boolean()
    .default(false)
    .describe(
      "Record the answers of tools, interactions and judges of single conversations in journal/ of the run folder, until a checkpoint holds the step. A resumed run uses these answers. It repeats only calls whose answers a kill cut off.",
    ),
  device: z
    .enum(devices)
    .default("auto")
    .describe(
      "Device of the models. auto: a GPU by CUDA if all of its parts are installed (`cria doctor` lists them), else the CPU; never Metal or Vulkan, which have not run on a GPU yet. Over quantised weights results of CPU and GPU are not comparable bit by bit nor to a few percent: see docs/devices.md.",
    ),
  threads: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe(
      "Native threads; null: all cores. On the CPU no result depends on their number, with rollout.deterministic.",
    ),
  trackers: z
    .preprocess(
      (value) => (typeof value === "string" ? [value] : value),
      z.array(z.enum(["console", "file", "tensorboard", "mlflow", "wandb"])),
    )
    .default(["console", "file"])
    .describe(
      "console: progress on stderr; file: metrics.jsonl and rollouts/ of the run folder; the others are trackers.",
    ),
});

export type RunSettings = z.infer<typeof runOptions>;

/** Checkpoints of a run. */
export const saveOptions = z.strictObject({
  every: z.int().default(-1).describe("Steps between checkpoints; -1: only at the end."),
  minutes: z
    .number()
    .nonnegative()
    .default(5)
    .describe(
      "Minutes between interim checkpoints; 0: none. Only the newest is kept, and max_actor_ckpt_to_keep does not count it. Saving takes at most a twentieth of the time.",
    ),
  keep: z.int().positive().nullable().default(null).describe("Most checkpoints kept, the newest ones; null: all."),
});

/** Times of validations. */
export const validationTimes = z.strictObject({
  every: z.int().default(-1).describe("Steps between validations; -1: only before and after."),
  before: z.boolean().default(true).describe("Validate before the first step."),
});
