import type { AdvantageEstimator, EstimatorName, PolicyLossOptions } from "@cria/algorithms";
import type { RowPicker, RowSamplerClass } from "@cria/rollout";
import type { z } from "zod";
import type { TrainingBus } from "../cluster/training-bus.js";
import type { DistillationOptions, TeacherModel } from "../config/options/distillation.js";
import type { TrainConfig, trainConfigSchema } from "../config/train-config.js";
import type { Report } from "../events.js";
import type { Task } from "../task/task.js";
import type { Tracker } from "../trackers/tracker.js";

/** Any part of a config, in the names of a config file. */
export type PartialConfig = DeepPartial<z.input<typeof trainConfigSchema>>;

type DeepPartial<T> = T extends readonly unknown[] ? T : T extends object ? { [K in keyof T]?: DeepPartial<T[K]> } : T;

/** Held-out rows, and when the policy answers them. */
export interface ValidationOptions<Row extends object = object> {
  /** Rows of the task's kind, or files of rows. Prompt, system message and truth are made of them as of the task's. */
  rows: Task<Row>["definition"]["rows"];
  /** Steps between validations, at least 1; default: only before and after. */
  every?: number;
  /** Whether to validate before the first step; default true. */
  before?: boolean;
  /** Conversations of each row, at least 1; default 1. */
  n?: number;
  /** Sampling temperature, at least 0; default 0: greedy. */
  temperature?: number;
}

/** Who teaches, and how the policy learns from it. Defaults are those of a config: docs/teachers.md. */
export interface TeacherOptions {
  /** A GGUF file or an address, of any size and with the policy's vocabulary. Default: the policy's own model before training. */
  model?: string;
  /** A LoRA adapter on it. */
  adapter?: string;
  /** Of the policy's own model: "base" (default), as it was before training, or "live", as each step finds it, with `hint`. */
  weights?: TeacherModel["weights"];
  /** The field of each row that the teacher, and not the policy, reads as a system message: a demonstration, a correction. */
  hint?: string;
  /** Weight of the teacher's term beside the task's loss, at least 0; default 1. */
  coefficient?: number;
  /** Whether the reward trains too; default true. */
  taskRewards?: boolean;
  /** How the divergence is estimated at each token: "k3" (default), "k1", "k2", "abs". */
  estimate?: string;
  /** Whether minus the divergence is an advantage; default false: the estimate is differentiated. */
  policyGradient?: boolean;
  /** A token's divergence is cut off at plus and minus this; null (default): never. */
  maxLoss?: number | null;
  /** "relative": turns that lie further from the teacher than the first count less; default "none". */
  turnWeights?: DistillationOptions["turnWeights"];
}

/**
 * What `train` does. An option that is left out is taken from `config`; else it has the default given here, and else
 * that of a config.
 */
export interface TrainOptions<Row extends object = object> {
  /** A GGUF file or an address: hf:<owner>/<model>:<quantisation>. May stand in `config` instead. */
  model?: string;
  /** The projector with which the model sees images: llama.cpp's mmproj, a GGUF or its address. Default: it reads text alone. */
  mmproj?: string;
  /** Rows, tools and reward: `defineTask({...})`. May stand in `config` instead, by paths. */
  task?: Task<Row>;
  /** Of an agent: what its episodes are about. In place of `task`, which says the same and more: `defineTask({ rows, agent })`. */
  rows?: Task<object>["definition"]["rows"];
  /** A program of yours that calls the policy by itself: the policy is its `model`, its result the reward. */
  agent?: Task<object>["definition"]["agent"];
  /** Held-out rows. Default: `data.val_files` of `config`, else none. */
  validation?: ValidationOptions<Row>;
  /** Steps in all; default: those of `epochs`. */
  steps?: number;
  /** Passes over the rows; default 1. */
  epochs?: number;
  /** Prompts of one step; default 16. */
  batchSize?: number;
  /** Conversations of each prompt; default 8. */
  n?: number;
  /** Sampling temperature, above 0; default 1. */
  temperature?: number;
  /**
   * Steps that are sampled ahead, at least 0; default 0. With a lag of 1 the conversations of the next step go on while this one is
   * learned from, so that slow tools leave no core idle. Each step is sampled by the policy of so many updates before: what is
   * trained depends on the lag, never on what ends first. Needs an adapter.
   */
  lag?: number;
  /**
   * Which rows each step is given: the name of a built-in sampler ("difficulty" asks rows less often that always or never succeed), a
   * class of your own, which may learn from each step's outcome, or a function that picks. It sees the task's rows. Default: passes over
   * all rows.
   */
  sampler?: "difficulty" | RowSamplerClass<Row> | RowPicker<Row>;
  /** Seed of sampling, of the rows' order, and of a new adapter's values; default 0. */
  seed?: number;
  /** AdamW's learning rate, at least 0; default 1e-4. */
  learningRate?: number;
  /**
   * The adapter that is trained: a new one of `rank` (default 16), `alpha` (default 16; it is scaled by alpha / rank)
   * and `targets` (default: all linear layers), or one from the file `path`; null: all weights of an F32 model are
   * trained.
   */
  lora?: { rank?: number; alpha?: number; targets?: readonly string[]; path?: string } | null;
  /** An advantage estimator or the name of one; default "grpo". */
  advantages?: EstimatorName | AdvantageEstimator;
  /** Made by `losses`; default `losses.ppo()`. */
  loss?: PolicyLossOptions;
  /**
   * A model that scores what the policy says, for the policy to move towards it (on-policy distillation). A larger model of the same
   * vocabulary, or the policy's own with a hint in front. Default: none.
   */
  teacher?: TeacherOptions;
  /** The run's name; default "default". */
  name?: string;
  /** Where run folders lie; default "runs". The run's own is <folder>/<project>/<name>. */
  folder?: string;
  /** true: go on from the run's newest checkpoint; a path: from that one; default false, where an earlier run is moved aside. */
  resume?: boolean | string;
  /** Steps and minutes between checkpoints, and how many are kept (default: all). Default: every 5 minutes, and at the end. */
  save?: { every?: number; minutes?: number; keep?: number };
  /** Names ("tensorboard", "wandb", "mlflow") or trackers of your own; metrics.jsonl is written all the same. */
  trackers?: readonly (string | Tracker)[];
  /** Threads of the CPU; default: all cores. */
  threads?: number;
  /** "auto" (default), "cpu" or "cuda". */
  device?: TrainConfig["trainer"]["device"];
  /**
   * Machines that share the work: `await openNatsBus({ servers, role: "coordinator" })`. The result is that of one machine, bit for
   * bit. Default: this process does all of it.
   */
  bus?: TrainingBus;
  /** Ends the run at once, in the middle of a step; what was done is saved. `await` then throws TrainingInterrupted. */
  signal?: AbortSignal;
  /** Told of all that happens, in order. What it throws ends the training. */
  report?: Report;
  /** Any other key of a config. The options above override it. */
  config?: PartialConfig;
  /** Where relative paths in `config` start; default: the working directory. */
  configFolder?: string;
}
