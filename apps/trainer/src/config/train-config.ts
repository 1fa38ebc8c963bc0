import { z } from "zod";
import { rewardModelsSchema } from "./reward-models-config.js";
import { targetModulesSchema } from "./target-modules.js";

/** Config of `cria train`, with the key names that users of the field's frameworks know. Unknown keys are errors. */

const files = z.union([z.string(), z.array(z.string())]).transform((value) => (Array.isArray(value) ? value : [value]));
const minP = z.number().min(0).lt(1).default(0);
const turns = z.int().positive().nullable().default(null);

const beta = z.number().min(0).lt(1);

const schedule = {
  /** constant, or cosine: it falls to min_lr_ratio times lr over the run. */
  lr_scheduler_type: z.enum(["constant", "cosine"]).default("constant"),
  /** Steps over which lr rises, the actor's counted from the end of trainer.critic_warmup; -1: the ratio says it. */
  lr_warmup_steps: z.int().min(-1).default(-1),
  /** Of all steps; for the actor of those after trainer.critic_warmup. */
  lr_warmup_steps_ratio: z.number().min(0).max(1).default(0),
  /** Of cosine: where it begins to rise and where it ends, as a share of lr. */
  min_lr_ratio: z
    .number()
    .min(0)
    .max(1)
    .nullable()
    .default(0)
    .transform((ratio) => ratio ?? 0),
  /** Of cosine: half a cycle falls once. */
  num_cycles: z.number().min(0).default(0.5),
};

const model = z.strictObject({
  path: z.string(),
  /** 0: full training. */
  lora_rank: z.int().min(0).default(0),
  /** null: 16, or that of lora_adapter_path. */
  lora_alpha: z.number().positive().nullable().default(null),
  target_modules: targetModulesSchema.default("all-linear"),
  /** An adapter GGUF to start from. Rank, alpha and layers are its own; those given beside it must be the same. */
  lora_adapter_path: z.string().nullable().default(null),
});

const actor = z.strictObject({
  optim: z
    .strictObject({
      lr: z.number().positive().default(1e-4),
      ...schedule,
      weight_decay: z.number().min(0).default(0),
      betas: z.tuple([beta, beta]).default([0.9, 0.999]),
    })
    .prefault({}),
  /** In prompts. */
  ppo_mini_batch_size: z.int().positive().default(8),
  /** In tokens, padding included; null: chosen. */
  ppo_max_token_len: z.int().positive().nullable().default(null),
  ppo_epochs: z.int().positive().default(1),
  shuffle: z.boolean().default(true),
  clip_ratio: z.number().positive().default(0.2),
  clip_ratio_low: z.number().min(0).nullable().default(null),
  clip_ratio_high: z.number().positive().nullable().default(null),
  clip_ratio_c: z.number().gt(1).default(3),
  loss_agg_mode: z.string().default("token-mean"),
  /** Divisor of seq-mean-token-sum-norm; null: the longest response allowed. */
  loss_scale_factor: z.number().positive().nullable().default(null),
  entropy_coeff: z.number().default(0),
  /**
   * Leave conversations without advantage out of evaluation and update where they have no gradient: it is the same, and
   * cheaper. false: as other frameworks do; actor/entropy, actor/ppo_kl, training/rollout_probs_diff_* and rollout_corr/*
   * then cover the whole batch, and a batch without any advantage still takes an optimizer step.
   */
  skip_zero_advantage: z.boolean().default(true),
  use_kl_loss: z.boolean().default(false),
  kl_loss_coef: z.number().default(0.001),
  kl_loss_type: z.string().default("low_var_kl"),
  grad_clip: z.number().min(0).default(1),
  policy_loss: z
    .strictObject({
      /** A registered loss, or "module#export". */
      loss_mode: z.string().default("vanilla"),
      clip_cov_ratio: z.number().gt(0).max(1).default(2e-4),
      clip_cov_lb: z.number().default(1),
      clip_cov_ub: z.number().default(5),
      kl_cov_ratio: z.number().gt(0).max(1).default(2e-4),
      ppo_kl_coef: z.number().min(0).default(1),
    })
    .prefault({}),
  /** Of the loss sapo: temperatures where the advantage is above 0, and elsewhere. */
  tau_pos: z.number().positive().default(1),
  tau_neg: z.number().positive().default(1),
});

const multiTurn = z.strictObject({
  enable: z.boolean().default(true),
  max_assistant_turns: turns,
  max_user_turns: turns,
  tool_config_path: z.string().nullable().default(null),
  interaction_config_path: z.string().nullable().default(null),
  /** An interaction answers when the number of assistant turns is a multiple of this. */
  interaction_interval: z.int().positive().default(1),
  /** Chance that it then does. */
  interaction_prob: z.number().min(0).max(1).default(1),
  max_parallel_calls: z.int().positive().default(1),
  max_tool_response_length: z.int().positive().default(256),
  max_tool_response_chars: z.int().min(0).default(0),
  tool_response_truncate_side: z.enum(["left", "middle", "right"]).default("middle"),
  /** A parser of tool calls (README of @cria/tools), or "./module.ts#parse". */
  format: z.string().default("hermes"),
  tokenization_sanity_check_mode: z.enum(["strict", "ignore_strippable", "disable"]).default("strict"),
  /** Seconds for each call of a tool or an interaction; the time that it waits for a sandbox does not count. */
  tool_timeout_s: z.number().positive().default(30),
  use_inference_chat_template: z.boolean().default(false),
  train_on_tool_calls: z.boolean().default(true),
  /** Samples of each prompt in training; null: rollout.n. */
  num_repeat_rollouts: z.int().positive().nullable().default(null),
});

const rollout = z.strictObject({
  n: z.int().positive().default(8),
  temperature: z.number().positive().default(1),
  top_p: z.number().gt(0).max(1).default(1),
  top_k: z.int().default(-1),
  /** Tokens less likely than so many times the likeliest are not sampled; 0: all may be. */
  min_p: minP,
  /** Texts that end a turn, in training and validation. Each stays in it and is trained on; the end-of-turn token then comes
   * with what follows, not trained on. */
  stop: z
    .union([z.string(), z.array(z.string())])
    .transform((given) => [given].flat())
    .refine((texts) => texts.every((text) => text !== ""), "texts that are not empty")
    .default([]),
  /** Most tokens of one turn, in training and validation; null: what is left of the response. A turn that is cut is final,
   * unless it has a complete tool call or an interaction is due. */
  max_tokens_per_turn: turns,
  prompt_length: z.int().positive().default(512),
  response_length: z.int().positive().default(512),
  /** Tokens of a whole conversation; null: prompt_length + response_length. */
  max_model_len: z.int().positive().nullable().default(null),
  /** Conversations in the KV cache at once, 1 to 256. */
  max_num_seqs: z.int().min(1).max(256).default(64),
  seed: z.int().default(0),
  deterministic: z.boolean().default(true),
  /**
   * What follows when the environment or a judge breaks a conversation: an interaction or agent loop that throws, a reward
   * function, reward model, calculateScore or calcReward that throws or takes too long. drop: the conversation is left out
   * of its group, of statistics and of updates. refill: it is sampled again, three times at most, then dropped. error: the
   * run ends. What the policy causes (a bad call, its program's time-out, too long an answer, turns used up) is scored in
   * any case. A step in which every conversation failed ends the run.
   */
  on_failure: z.enum(["drop", "refill", "error"]).default("drop"),
  multi_turn: multiTurn.prefault({}),
  agent: z
    .strictObject({
      default_agent_loop: z.string().default("tool_agent"),
      /** YAML: agent_loops: [{ name, class_name, config? }]. */
      agent_loop_config_path: z.string().nullable().default(null),
    })
    .prefault({}),
  val_kwargs: z
    .strictObject({
      do_sample: z.boolean().default(false),
      temperature: z.number().min(0).default(1),
      top_p: z.number().gt(0).max(1).default(1),
      /** -1 or 0: all tokens. */
      top_k: z.int().default(-1),
      min_p: minP,
      n: z.int().positive().default(1),
    })
    .prefault({}),
});

const data = z.strictObject({
  train_files: files,
  val_files: files.nullable().default(null),
  train_batch_size: z.int().positive().default(16),
  /** Columns of the messages, of what routes the reward, and of media, which must be empty: policies read text alone. */
  prompt_key: z.string().default("prompt"),
  reward_fn_key: z.string().default("data_source"),
  image_key: z.string().default("images"),
  video_key: z.string().default("videos"),
  max_prompt_length: z.int().positive().default(512),
  max_response_length: z.int().positive().default(512),
  /** Leave out rows whose prompt has more than max_prompt_length tokens. */
  filter_overlong_prompts: z.boolean().default(false),
  /** What happens to longer prompts otherwise: an error, or the side that is cut away. */
  truncation: z.enum(["error", "left", "right", "middle"]).default("error"),
  /** Folder of cached prompt lengths; null: ~/.cache/cria, or below XDG_CACHE_HOME. */
  cache_dir: z.string().nullable().default(null),
  /** For rows whose extra_info does not say need_tools_kwargs. */
  need_tools_kwargs: z.boolean().default(false),
  /** The rendered prompt goes to reward functions (extraInfo.full_prompt) and into dumps. */
  return_full_prompt: z.boolean().default(false),
  shuffle: z.boolean().default(true),
  seed: z.int().default(0),
  /** -1: all. With shuffle, so many by data.seed; else the first ones. */
  train_max_samples: z.int().min(-1).default(-1),
  /** -1: all; else the first ones. */
  val_max_samples: z.int().min(-1).default(-1),
  apply_chat_template_kwargs: z.record(z.string(), z.unknown()).default({}),
  /**
   * false: what users, tools and interactions say never becomes a control token (a token that the GGUF marks as one, as
   * `<|im_end|>`), so that their text cannot end a turn or speak as the assistant. true: it is read with them, as verl
   * and Hugging Face read it.
   */
  allow_control_tokens: z.boolean().default(false),
  /** A class that extends RolloutDataset; TypeScript needs no build step. */
  custom_cls: z
    .strictObject({ path: z.string().nullable().default(null), name: z.string().nullable().default(null) })
    .prefault({}),
});

const rewardModel = z.strictObject({
  /** Models that score conversations, beside the rules. */
  enable: z.boolean().default(false),
  model: rewardModelsSchema.default([]),
  /** Of the rules (reward function, data source, interaction, tools) beside the models; 0: they are not asked. */
  rule_weight: z.number().default(1),
  /** Models still judge while old_log_prob is computed; false, or on_failure refill: the step waits for them first. */
  launch_reward_fn_async: z.boolean().default(true),
  /** naive, dapo, batch, or one that was registered. */
  reward_manager: z.string().default("naive"),
  /** Seconds for each call of a reward function; null: no limit. What takes longer fails (rollout.on_failure). */
  timeout_s: z.number().positive().nullable().default(300),
  /** Of the manager dapo: in the last `len` tokens of the budget the reward falls by up to `penalty_factor`. */
  overlong_buffer: z
    .strictObject({
      enable: z.boolean().default(false),
      len: z.int().min(0).default(0),
      penalty_factor: z.number().min(0).default(1),
      log: z.boolean().default(false),
    })
    .prefault({}),
  aggregation: z
    .strictObject({
      trajectory_weight: z.number().default(1),
      tool_weight: z.number().default(1),
      interaction_weight: z.number().default(1),
      /** last_token, uniform, exponential_decay, importance. */
      strategy: z.string().default("last_token"),
      /** Of exponential_decay. */
      gamma: z.number().gt(0).max(1).default(0.99),
      /** Of importance. */
      tool_call_weight: z.number().min(0).default(2),
      text_weight: z.number().min(0).default(0.5),
    })
    .prefault({}),
  token_reward: z
    .strictObject({
      enable: z.boolean().default(true),
      /** For each valid tool call. */
      tool_call_bonus: z.number().default(0),
      /** For each interaction turn with a score above 0. */
      interaction_bonus: z.number().default(0),
    })
    .prefault({}),
  trajectory_reward: z
    .strictObject({
      enable: z.boolean().default(true),
      /** Instead of the score of a trajectory that succeeds, or does not; null: the score stays. */
      success_reward: z.number().nullable().default(null),
      failure_reward: z.number().nullable().default(null),
      /** Added for each sampled token. */
      length_penalty: z.number().max(0, "0 or less: it is added for each sampled token").default(0),
    })
    .prefault({}),
});

const klController = z.strictObject({
  type: z.enum(["fixed", "adaptive"]).default("fixed"),
  kl_coef: z.number().min(0).default(0.001),
  /** Of adaptive: the KL to hold, and in how many trajectories. */
  target_kl: z.number().positive().default(0.1),
  horizon: z.number().positive().default(10_000),
});

const filterGroups = z.strictObject({
  enable: z.boolean().default(false),
  /** seq_reward, score, or what the reward function returns beside its score (acc). */
  metric: z.string().nullable().default(null),
  /** Batches of prompts in one step; 0: no limit but the prompts there are. */
  max_num_gen_batches: z.int().min(0).default(0),
});

/** Names of verl 0.7, and those of verl 0.9. */
const olderRejections = { token: "token_k1", sequence: "seq_sum_k1", geometric: "seq_mean_k1" } as const;

const rolloutCorrection = z.strictObject({
  rollout_is: z.enum(["token", "sequence"]).nullable().default(null),
  rollout_is_threshold: z.number().positive().default(2),
  /** What is rejected by its ratio: tokens, sequences by the product of their tokens', or by its geometric mean. */
  rollout_rs: z
    .enum(["token_k1", "seq_sum_k1", "seq_mean_k1", "token", "sequence", "geometric"])
    .transform((name) => olderRejections[name as keyof typeof olderRejections] ?? name)
    .nullable()
    .default(null),
  /**
   * A number x above 1: ratios outside 1/x to x are rejected. "lower_upper", as "0.5_2.0": bounds of the ratio sampler /
   * training graph. null: 2.
   */
  rollout_rs_threshold: z
    .union([
      z.number().gt(1),
      z.string().regex(/^[\d.eE-]+_[\d.eE-]+$/, 'a number above 1, or "lower_upper", for example "0.5_2.0"'),
    ])
    .nullable()
    .default(null),
  /** Beside a number in rollout_rs_threshold: the lower bound, both then of the ratio training graph / sampler. */
  rollout_rs_threshold_lower: z.number().positive().nullable().default(null),
  /** Weights are divided by their mean, once they are cut off. */
  rollout_is_batch_normalize: z.boolean().default(false),
  /** A sequence with a token whose ratio is below this is rejected; null: none is. */
  rollout_token_veto_threshold: z.number().positive().nullable().default(null),
  /** The sampler's logprobs are the old logprobs: one forward pass less. */
  bypass_mode: z.boolean().default(false),
});

const algorithm = z
  .strictObject({
    /** A registered estimator, or "module#export". */
    adv_estimator: z.string().default("grpo"),
    norm_adv_by_std_in_grpo: z.boolean().default(true),
    gamma: z.number().min(0).max(1).default(1),
    lam: z.number().min(0).max(1).default(1),
    use_kl_in_reward: z.boolean().default(false),
    kl_penalty: z.string().default("kl"),
    kl_ctrl: klController.prefault({}),
    filter_groups: filterGroups.prefault({}),
    rollout_correction: rolloutCorrection.prefault({}),
  })
  .prefault({});

const trainer = z.strictObject({
  project_name: z.string().default("cria"),
  experiment_name: z.string().default("default"),
  default_local_dir: z.string().default("runs"),
  total_epochs: z.int().positive().default(1),
  total_training_steps: z.int().positive().nullable().default(null),
  /** Steps between checkpoints; -1: only at the end. */
  save_freq: z.int().default(-1),
  /**
   * Minutes between interim checkpoints, of which only the newest is kept; they do not count against
   * max_actor_ckpt_to_keep. Saving them takes a twentieth of the time at most. 0: none.
   */
  save_minutes: z.number().nonnegative().default(5),
  /** Most checkpoints kept, the newest ones; null: all. */
  max_actor_ckpt_to_keep: z.int().positive().nullable().default(null),
  /** auto: go on from the newest checkpoint of the run folder; disable: start anew; resume_path: from resume_from_path. */
  resume_mode: z.enum(["auto", "disable", "resume_path"]).default("auto"),
  /** A folder global_step_<N>, or a run folder; from where the command runs, as default_local_dir. */
  resume_from_path: z
    .union([z.string(), z.literal(false).transform(() => null)])
    .nullable()
    .default(null),
  /** Steps between validations; -1: only before and after. */
  test_freq: z.int().default(-1),
  val_before_train: z.boolean().default(true),
  /** Steps in which the critic learns before the actor's first update. */
  critic_warmup: z.int().min(0).default(0),
  /**
   * Where models run. auto: on a GPU when all that it needs is there, which `cria doctor` lists, else on the CPU. Over quantised
   * weights results of CPU and GPU are not comparable bit by bit nor to a few percent: see "Devices" in @cria/engine's README.
   */
  device: z.enum(["auto", "cpu", "cuda"]).default("auto"),
  /** Native threads; null: all cores. On the CPU no result depends on their number, with `rollout.deterministic`. */
  threads: z.int().positive().nullable().default(null),
  /** console: progress on stderr; file: metrics.jsonl and rollouts/ of the run folder; the others are trackers. */
  logger: z
    .preprocess(
      (value) => (typeof value === "string" ? [value] : value),
      z.array(z.enum(["console", "file", "tensorboard", "mlflow", "wandb"])),
    )
    .default(["console", "file"]),
  /** Validate, print, and train nothing. */
  val_only: z.boolean().default(false),
  /** Folders of the conversations; null: rollouts/ and validation/ of the run folder. From where the command runs. */
  rollout_data_dir: z.string().nullable().default(null),
  validation_data_dir: z.string().nullable().default(null),
  /** Conversations of each validation that the trackers show; validation/<step>.jsonl has all of them. */
  log_val_generations: z.int().min(0).default(0),
  /** Steps that run under V8's CPU profiler, into profiles/<step>.cpuprofile of the run folder. */
  profile_steps: z.array(z.int().positive()).nullable().default(null),
});

/** For the estimators that need values (gae). What is null is as the actor's. */
const critic = z.strictObject({
  model: z
    .strictObject({
      /** The backbone: a GGUF. */
      path: z.string().nullable().default(null),
      /** 0: full training. */
      lora_rank: z.int().min(0).nullable().default(null),
      lora_alpha: z.number().positive().nullable().default(null),
      target_modules: targetModulesSchema.nullable().default(null),
    })
    .prefault({}),
  optim: z
    .strictObject({
      lr: z.number().positive().default(1e-3),
      ...schedule,
      weight_decay: z.number().min(0).default(0),
      betas: z.tuple([beta, beta]).default([0.9, 0.999]),
    })
    .prefault({}),
  /** In prompts. */
  ppo_mini_batch_size: z.int().positive().nullable().default(null),
  ppo_max_token_len: z.int().positive().nullable().default(null),
  ppo_epochs: z.int().positive().nullable().default(null),
  shuffle: z.boolean().default(true),
  cliprange_value: z.number().positive().default(0.5),
  loss_agg_mode: z.string().default("token-mean"),
  grad_clip: z.number().min(0).default(1),
});

export const trainConfigSchema = z.strictObject({
  actor_rollout_ref: z.strictObject({ model, actor: actor.prefault({}), rollout: rollout.prefault({}) }),
  critic: critic.prefault({}),
  data,
  algorithm,
  reward_model: rewardModel.prefault({}),
  custom_reward_function: z
    .strictObject({
      path: z.string().nullable().default(null),
      name: z.string().default("computeScore"),
      /** The function's last argument. */
      reward_kwargs: z.record(z.string(), z.unknown()).default({}),
    })
    .prefault({}),
  trainer: trainer.prefault({}),
});

export type TrainConfig = z.infer<typeof trainConfigSchema>;
