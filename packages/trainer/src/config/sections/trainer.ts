import { devices } from "@cria/core";
import { z } from "zod";
import { environmentOptions } from "../options/environment.js";

/** A name that becomes a subfolder. */
export const folderName = z
  .string()
  .refine(
    (name) => !/^[/\\]|^[A-Za-z]:|\0/.test(name) && !name.split(/[/\\]/).some((part) => /^(\s*|\.\.?)$/.test(part)),
    "a name of a folder, which may have folders in it, but does not lead out of the one above",
  );

const warmupBatches = z
  .int()
  .min(0)
  .default(1)
  .describe(
    "Lag in steps: number of updates between sampling a step and learning from it. So many versions of the trained weights, and one more, stay in memory.",
  );

/** verl's trainer of version 1: its mode decides whether steps are sampled while earlier ones are trained on. */
const v1 = z.strictObject({
  trainer_mode: z
    .enum(["sync", "colocate_async", "separate_async"])
    .default("sync")
    .describe(
      "sync: the newest weights sample each step. colocate_async and separate_async: steps are sampled ahead by a schedule, so that slow tools leave no core idle. Results depend only on the lag, never on timing.",
    ),
  colocate_async: z.strictObject({ num_warmup_batches: warmupBatches }).prefault({}),
  separate_async: z
    .strictObject({
      num_warmup_batches: warmupBatches,
      parameter_sync_step: z
        .int()
        .positive()
        .default(4)
        .describe(
          "Number of mini-batches between two versions that sample: data.train_batch_size is this times actor.ppo_mini_batch_size.",
        ),
    })
    .prefault({}),
  sampler: z
    .strictObject({
      max_off_policy_threshold: z
        .int()
        .positive()
        .nullable()
        .default(8)
        .describe(
          "The largest lag that is allowed; null: any. The schedule never exceeds its own, so that nothing is dropped for being old.",
        ),
    })
    .prefault({}),
});

/** Keys that mean the same in `cria sft` are shared with that command. */
export const trainerSection = z.strictObject({
  project_name: folderName
    .default("cria")
    .describe("The run folder is <default_local_dir>/<project_name>/<experiment_name>."),
  experiment_name: folderName.default("default").describe("The run's name in its project."),
  default_local_dir: z
    .string()
    .default("runs")
    .describe("Parent of run folders; the default is in the working directory."),
  total_epochs: z.int().positive().default(1).describe("Passes over the rows, unless total_training_steps is given."),
  total_training_steps: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Steps to train; null: those of total_epochs."),
  save_freq: z.int().default(-1).describe("Steps between checkpoints; -1: only at the end."),
  save_minutes: z
    .number()
    .nonnegative()
    .default(5)
    .describe(
      "Minutes between interim checkpoints; 0: none. Only the newest is kept, and max_actor_ckpt_to_keep does not count it. Saving takes at most a twentieth of the time.",
    ),
  max_actor_ckpt_to_keep: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Most checkpoints kept, the newest ones; null: all."),
  resume_mode: z
    .enum(["auto", "disable", "resume_path"])
    .default("auto")
    .describe(
      "auto: go on from the newest checkpoint of the run folder; disable: start a new run; resume_path: go on from resume_from_path.",
    ),
  resume_from_path: z
    .union([z.string(), z.literal(false).transform(() => null)])
    .nullable()
    .default(null)
    .describe("A folder global_step_<N>, or a run folder."),
  journal: z
    .boolean()
    .default(false)
    .describe(
      "Record the answers of tools, interactions and judges of single conversations in journal/ of the run folder, until a checkpoint holds the step. A resumed run uses these answers. It repeats only calls whose answers a kill cut off.",
    ),
  test_freq: z.int().default(-1).describe("Steps between validations; -1: only before and after."),
  val_before_train: z.boolean().default(true).describe("Validate before the first step."),
  critic_warmup: z
    .int()
    .min(0)
    .default(0)
    .describe("Steps in which the critic learns before the actor's first update."),
  device: z
    .enum(devices)
    .default("auto")
    .describe(
      "Device of the models. auto: a GPU by CUDA if all of its parts are installed (`cria doctor` lists them), else the CPU; never Vulkan, which has not run on a GPU yet. Over quantised weights results of CPU and GPU are not comparable bit by bit nor to a few percent: see docs/devices.md.",
    ),
  threads: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe(
      "Native threads; null: all cores. On the CPU no result depends on their number, with rollout.deterministic.",
    ),
  logger: z
    .preprocess(
      (value) => (typeof value === "string" ? [value] : value),
      z.array(z.enum(["console", "file", "tensorboard", "mlflow", "wandb"])),
    )
    .default(["console", "file"])
    .describe(
      "console: progress on stderr; file: metrics.jsonl and rollouts/ of the run folder; the others are trackers.",
    ),
  tracing: environmentOptions.shape.tracing,
  val_only: z.boolean().default(false).describe("Validate, print, and train nothing."),
  rollout_data_dir: z
    .string()
    .nullable()
    .default(null)
    .describe("Folder of training's conversations; null: rollouts/ of the run folder."),
  rollout_data_detail: z
    .enum(["tokens", "full"])
    .default("tokens")
    .describe(
      "Details of each token in dumps. tokens: text and the sampler's logprob. full: also old and reference logprobs, advantages, entropy, and times of turns. With full, the dumps of two runs are never equal.",
    ),
  validation_data_dir: z
    .string()
    .nullable()
    .default(null)
    .describe("Folder of validation's conversations; null: validation/ of the run folder."),
  log_val_generations: z
    .int()
    .min(0)
    .default(0)
    .describe("Conversations of each validation that the trackers show; validation/<step>.jsonl has all of them."),
  v1: v1.prefault({}),
  profile_steps: z
    .array(z.int().positive())
    .nullable()
    .default(null)
    .describe("Steps that run under V8's CPU profiler, into profiles/<step>.cpuprofile of the run folder."),
});
