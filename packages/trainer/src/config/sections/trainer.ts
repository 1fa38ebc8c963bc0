import { z } from "zod";
import { environmentOptions } from "../options/environment.js";
import { folderName, runOptions, saveOptions, validationTimes } from "../options/run.js";
import { aheadOptions } from "../options/sampling.js";

const { shape: run } = runOptions;
const { shape: save } = saveOptions;
const { shape: validation } = validationTimes;

/** verl's trainer of version 1: its mode decides whether steps are sampled while earlier ones are trained on. */
const v1 = z.strictObject({
  trainer_mode: z
    .enum(["sync", "colocate_async", "separate_async"])
    .default("sync")
    .describe(
      "sync: the newest weights sample each step. colocate_async and separate_async: steps are sampled ahead by a schedule, so that slow tools leave no core idle. Results depend only on the lag, never on timing.",
    ),
  colocate_async: z.strictObject({ num_warmup_batches: aheadOptions.shape.lag }).prefault({}),
  separate_async: z
    .strictObject({
      num_warmup_batches: aheadOptions.shape.lag,
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
  experiment_name: run.name,
  default_local_dir: run.folder,
  total_epochs: run.epochs,
  total_training_steps: run.steps,
  save_freq: save.every,
  save_minutes: save.minutes,
  max_actor_ckpt_to_keep: save.keep,
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
  journal: run.journal,
  test_freq: validation.every,
  val_before_train: validation.before,
  critic_warmup: z
    .int()
    .min(0)
    .default(0)
    .describe("Steps in which the critic learns before the actor's first update."),
  device: run.device,
  threads: run.threads,
  logger: run.trackers,
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
