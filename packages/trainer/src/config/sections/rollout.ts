import { z } from "zod";
import { agentOptions, environmentOptions } from "../options/environment.js";
import { multiTurnOptions } from "../options/multi-turn.js";
import { samplingOptions, treeOptions } from "../options/sampling.js";

const { shape: sampling } = samplingOptions;
const { shape: environment } = environmentOptions;
const { shape: turns } = multiTurnOptions;
const { shape: agentShape } = agentOptions;
const { shape: treeShape } = treeOptions;

/** Truncation of the sampling distribution, in training and in validation. */
const sampledFrom = {
  top_p: sampling.topP,
  top_k: z.int().default(-1).describe("Top-k: sample from this many of the likeliest tokens; -1 or 0: from all."),
  min_p: sampling.minP,
};

const multiTurn = z.strictObject({
  enable: z.boolean().default(true).describe("false: one turn, without tools and interactions."),
  max_assistant_turns: turns.maxAssistantTurns,
  max_user_turns: turns.maxUserTurns,
  tool_config_path: environment.toolConfigPath,
  interaction_config_path: environment.interactionConfigPath,
  interaction_interval: turns.interactionInterval,
  interaction_prob: turns.interactionProb,
  max_parallel_calls: turns.maxParallelCalls,
  max_tool_response_length: turns.maxToolResponseLength,
  max_tool_response_chars: turns.maxToolResponseChars,
  tool_response_truncate_side: turns.toolResponseTruncateSide,
  format: turns.format,
  tokenization_sanity_check_mode: turns.tokenizationSanityCheckMode,
  tool_timeout_s: turns.toolTimeoutS,
  use_inference_chat_template: turns.useInferenceChatTemplate,
  train_on_tool_calls: turns.trainOnToolCalls,
  num_repeat_rollouts: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Samples of each prompt in training; null: rollout.n."),
});

const valKwargs = z.strictObject({
  do_sample: z.boolean().default(false).describe("false: greedy, at any temperature."),
  temperature: z.number().min(0).default(1).describe("Sampling temperature, with do_sample."),
  ...sampledFrom,
  n: z.int().positive().default(1).describe("Samples of each prompt; a row's __rollout_n__ overrides this."),
});

const agent = z.strictObject({
  default_agent_loop: agentShape.defaultAgentLoop,
  agent_loop_config_path: agentShape.agentLoopConfigPath,
  timeout_s: agentShape.timeoutS,
  max_calls: agentShape.maxCalls,
});

const tree = z.strictObject({
  expansions: treeShape.expansions,
  rounds: treeShape.rounds,
});

export const rolloutSection = z.strictObject({
  n: z
    .int()
    .positive()
    .default(8)
    .describe("Conversations sampled of each prompt in training; a row's __rollout_n__ overrides this."),
  temperature: z
    .number()
    .positive()
    .default(1)
    .describe("Sampling temperature in training; logprobs are computed at this temperature."),
  ...sampledFrom,
  stop: environment.stop,
  max_tokens_per_turn: environment.maxTokensPerTurn,
  prompt_length: z
    .int()
    .positive()
    .default(512)
    .describe("Tokens of a prompt that the KV cache has room for; unless given, data.max_prompt_length."),
  response_length: z
    .int()
    .positive()
    .default(512)
    .describe("Most tokens after the prompt, over all turns; unless given, data.max_response_length."),
  max_model_len: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Tokens of a whole conversation; null: prompt_length + response_length."),
  max_num_seqs: z
    .int()
    .min(1)
    .max(256)
    .default(64)
    .describe("Conversations in the KV cache at once, 1 to 256; others wait."),
  seed: z.int().default(0).describe("Seed of sampling, and of a new adapter's initial weights."),
  deterministic: z
    .boolean()
    .default(true)
    .describe("The same seed gives the same bits, however conversations are batched; false: a little faster."),
  partial_rollout: z
    .enum(["carry_on", "switch", "switch_keep_kv"])
    .default("carry_on")
    .describe(
      "With a lag, for conversations that an update finds unfinished. carry_on: the version that began a conversation samples all of it, and results depend only on the lag. switch: the newest version samples the next turn, so that samples are younger; results then depend on the clock. Each turn's version is in the dump. switch_keep_kv: the same, with the keys and values of the earlier versions, so that nothing is evaluated again.",
    ),
  tree: tree.prefault({}),
  on_failure: environment.onFailure,
  multi_turn: multiTurn.prefault({}),
  agent: agent.prefault({}),
  branch_credit: environment.branchCredit,
  train_on_constrained_tokens: environment.trainOnConstrainedTokens,
  val_kwargs: valKwargs.prefault({}),
});
