import type { AdvantageEstimator, EstimatorName, PolicyLossOptions } from "@cria/algorithms";
import type { Device } from "@cria/core";
import type { GroupPicker, GroupSamplerClass, RowPicker, RowSamplerClass } from "@cria/rollout";
import type { z } from "zod";
import type { TrainingBus } from "../cluster/training-bus.js";
import type { DistillationOptions, TeacherModel } from "../config/options/distillation.js";
import type { trainConfigSchema } from "../config/train-config.js";
import type { Report } from "../events.js";
import type { Task } from "../task/task.js";
import type { Tracker } from "../trackers/tracker.js";

/** Any part of a config, in the names of a config file. */
export type PartialConfig = DeepPartial<z.input<typeof trainConfigSchema>>;

type DeepPartial<T> = T extends readonly unknown[] ? T : T extends object ? { [K in keyof T]?: DeepPartial<T[K]> } : T;

/** Held-out rows, and the times of their validation. */
export interface ValidationOptions<Row extends object = object> {
  /** Rows like the task's, or files of rows. Prompt, system message and truth are made from them as from the task's. */
  rows: Task<Row>["definition"]["rows"];
  /** Number of steps between validations, at least 1; default: only before and after training. */
  every?: number;
  /** True validates before the first step; default true. */
  before?: boolean;
  /** Number of conversations of each row, at least 1; default 1. */
  n?: number;
  /** Sampling temperature, at least 0; default 0: greedy. */
  temperature?: number;
}

/** The teacher, and how the policy learns from it. Defaults are those of a config: docs/teachers.md. */
export interface TeacherOptions {
  /**
   * A GGUF file or an address, of any size but with the policy's vocabulary. Default: the policy's own model before
   * training.
   */
  model?: string;
  /** A LoRA adapter for the teacher. */
  adapter?: string;
  /**
   * Weights of a teacher that is the policy's own model: "base" (default), from before training, or "live", the current
   * ones, which needs `hint` or `correction`.
   */
  weights?: TeacherModel["weights"];
  /** Field of each row that only the teacher reads, as a system message: a demonstration, a correction. */
  hint?: string;
  /**
   * Name of a text that the reward returns beside the score, such as a judge's correction of this conversation: the
   * teacher reads it in place of `hint`. A conversation that has neither is not taught.
   */
  correction?: string;
  /** Weight of the teacher's term relative to the task's loss, at least 0; default 1. */
  coefficient?: number;
  /** True if rewards are trained on too; default true. */
  taskRewards?: boolean;
  /**
   * Estimator of the divergence at each token: "k3" (default), "k1", "k2", "abs". "forward_kl_topk" computes it over the
   * teacher's likeliest tokens instead.
   */
  estimate?: string;
  /** With "forward_kl_topk": number of these tokens, at least 1; default 32. */
  topk?: number;
  /** True uses the negative divergence as an advantage; default false: the estimate is differentiated. */
  policyGradient?: boolean;
  /** Limit of a token's divergence, which is clamped to ± this value; null (default): no limit. */
  maxLoss?: number | null;
  /** "relative": turns that are further from the teacher than the first have smaller weights; default "none". */
  turnWeights?: DistillationOptions["turnWeights"];
  /**
   * Probability that the teacher, and not the policy, samples a turn of the first step; default 0. The policy learns
   * nothing from such a turn.
   */
  guidedShare?: number;
  /** Number of steps over which that probability falls to 0; default 100. */
  guidedSteps?: number;
}

/** Groups of earlier steps that a step learns from once more. Defaults are those of a config. */
export interface ReplayedGroupsOptions {
  /** Number of replayed groups for each of the step's own, 0 to 8; default 0: there is no buffer. */
  share?: number;
  /** Most groups in the buffer, at least 1; default 256. */
  size?: number;
  /** Number of steps after which a group is not replayed any more, at least 1; default 4. */
  maxAge?: number;
  /**
   * Chooses the groups: "uniform" (default) draws them by the seed, "newest", "by_variance" takes those whose rewards
   * vary most, a class of yours, which may have a state, or a function.
   */
  sampling?: "uniform" | "newest" | "by_variance" | GroupSamplerClass | GroupPicker;
  /** Options of a class or function of yours. */
  samplingKwargs?: Record<string, unknown>;
}

/** Conversations that every update also learns to repeat. `losses.ppo({ demonstrations })` says their weight. */
export interface DemonstrationsOptions {
  /** Files or addresses of conversations, as `cria sft` reads them, or dumps of rollouts. */
  files: readonly string[];
  /** Number of conversations of each optimizer step, at least 1; default 8. */
  size?: number;
  /** For dumps: a filter of their conversations, such as "reward == 1"; default: all that ended by themselves. */
  keep?: string;
}

/** Weights of single rows in the terms of the loss: policy, entropy, reference, teacher, observations, own ones. */
export interface LossWeightsOptions {
  /** Field of each row that names an entry of `rows`, or is such an entry itself; default "data_source". */
  key?: string;
  /** For each value of that field: weights of the row by term, at least 0; terms that are not named have weight 1. */
  rows?: Record<string, Record<string, number>>;
}

/**
 * Options of `train`. An option that is left out is taken from `config`, else from the default given here, else from
 * the default of a config.
 */
export interface TrainOptions<Row extends object = object> {
  /** A GGUF file or an address: hf:<owner>/<model>:<quantisation>. May be given in `config` instead. */
  model?: string;
  /**
   * The projector with which the model sees images: llama.cpp's mmproj, a GGUF or its address. Default: the model reads
   * only text.
   */
  mmproj?: string;
  /** Rows, tools and reward: `defineTask({...})`. May be given in `config` instead, as paths. */
  task?: Task<Row>;
  /**
   * Rows of an agent's episodes, with `agent`; a short form of `task: defineTask({ rows, agent })`, which has more
   * options.
   */
  rows?: Task<object>["definition"]["rows"];
  /** Your own function that calls the policy: the policy is its `model`, its result the reward. */
  agent?: Task<object>["definition"]["agent"];
  /** Held-out rows. Default: `data.val_files` of `config`, else none. */
  validation?: ValidationOptions<Row>;
  /** Total number of steps; default: those of `epochs`. */
  steps?: number;
  /** Number of passes over the rows; default 1. */
  epochs?: number;
  /** Number of prompts per step; default 16. */
  batchSize?: number;
  /** Number of conversations of each prompt; default 8. */
  n?: number;
  /**
   * Grows the conversations of each prompt as trees: in each of `rounds` rounds (default 1) `expansions` turns of a
   * tree are drawn, and another conversation goes on from the end of each, with the same tokens and tools in the same
   * state. Each tree has 1 + rounds x expansions conversations, and `n` is a multiple of that. Goes with `advantages:
   * "tree_grpo"`. Default: each conversation begins at the prompt.
   */
  tree?: { expansions: number; rounds?: number };
  /** Sampling temperature, above 0; default 1. */
  temperature?: number;
  /**
   * Number of steps to sample ahead, at least 0; default 0. With a lag of 1, the conversations of the next step run
   * while the current step is learned from, so that slow tools leave no core idle. Each step is sampled by the policy
   * from `lag` updates earlier: the result of training depends on the lag, never on what finishes first. With
   * `lora: null` memory must suffice for `lag + 1` copies of all weights.
   */
  lag?: number;
  /**
   * With a lag, for conversations that an update finds unfinished. "carry_on": the version that began a conversation
   * samples all of it. "switch": the newest version samples the next turn, so that samples are younger; what is learned
   * then depends on the clock. "switch_keep_kv": the same, with the keys and values of the earlier versions, so that
   * nothing is evaluated again. Default "carry_on".
   */
  partialRollout?: "carry_on" | "switch" | "switch_keep_kv";
  /**
   * Determines the rows of each step: the name of a built-in sampler ("difficulty" picks rows less often that always or
   * never succeed), your own class, which can learn from each step's outcome, or a function that picks rows. It
   * receives the task's rows. Default: passes over all rows.
   */
  sampler?: "difficulty" | RowSamplerClass<Row> | RowPicker<Row>;
  /**
   * Groups of earlier steps that a step learns from in addition to its own, weighed by the policy that sampled them.
   * Default: none.
   */
  replay?: ReplayedGroupsOptions;
  /** Seed of sampling, of the rows' order, and of a new adapter's values; default 0. */
  seed?: number;
  /** AdamW's learning rate, at least 0; default 1e-4. */
  learningRate?: number;
  /**
   * The adapter to train: a new one of `rank` (default 16), `alpha` (default 16; the adapter is scaled by alpha / rank)
   * and `targets` (default: all linear layers), or one from the file `path`; null: all weights of an F32 model are
   * trained. With `roles`, the names of all roles that the policy plays, each role has an adapter of its own, which
   * learns from its turns alone; default: one adapter plays all roles.
   */
  lora?: {
    rank?: number;
    alpha?: number;
    targets?: readonly string[];
    path?: string;
    roles?: readonly string[];
  } | null;
  /** An advantage estimator or its name; default "grpo". */
  advantages?: EstimatorName | AdvantageEstimator;
  /** A loss made by `losses`; default `losses.ppo()`. */
  loss?: PolicyLossOptions;
  /**
   * A model that scores the policy's tokens, and that the policy is trained towards (on-policy distillation): a larger
   * model with the same vocabulary, or the policy's own model with a hint. Default: none.
   */
  teacher?: TeacherOptions;
  /** Conversations to repeat beside learning from rewards. Default: none. */
  demonstrations?: DemonstrationsOptions;
  /** Weights of rows in the terms of the loss, for tasks that learn in several ways. Default: all are 1. */
  lossWeights?: LossWeightsOptions;
  /** The run's name; default "default". */
  name?: string;
  /** Parent of run folders; default "runs". The run's own folder is <folder>/<project>/<name>. */
  folder?: string;
  /**
   * true: resume from the run's newest checkpoint; a path: from that one; default false: an earlier run is moved aside.
   */
  resume?: boolean | string;
  /**
   * Number of steps and of minutes between checkpoints, and number of checkpoints to keep (default: all). Default:
   * every 5 minutes, and at the end.
   */
  save?: { every?: number; minutes?: number; keep?: number };
  /**
   * true: answers of tools, interactions and judges of single conversations are recorded in the run folder until a
   * checkpoint holds the step. A resumed run takes these answers, and asks nobody a second time but those whose answers
   * a kill cut off. Default false.
   */
  journal?: boolean;
  /** Names ("tensorboard", "wandb", "mlflow") or your own trackers; metrics.jsonl is always written. */
  trackers?: readonly (string | Tracker)[];
  /** Number of CPU threads; default: all cores. */
  threads?: number;
  /** "auto" (default), "cpu", "cuda", "metal" or "vulkan". */
  device?: Device;
  /**
   * Machines that share the work: `await openNatsBus({ servers, role: "coordinator" })`. The result is bit for bit that
   * of one machine. Default: this process does all the work.
   */
  bus?: TrainingBus;
  /**
   * Aborting it ends the run at once, even in the middle of a step; finished steps are saved. `await` then throws
   * TrainingInterrupted.
   */
  signal?: AbortSignal;
  /** Called with every event, in order. If it throws, the training ends. */
  report?: Report;
  /** Any other key of a config. The options above override it. */
  config?: PartialConfig;
  /** Base of relative paths in `config`; default: the working directory. */
  configFolder?: string;
}
