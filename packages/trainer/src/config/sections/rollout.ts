import { z } from "zod";
import { agentOptions, environmentOptions } from "../options/environment.js";
import { multiTurnOptions } from "../options/multi-turn.js";
import { runOptions } from "../options/run.js";
import { aheadOptions, samplingOptions, treeOptions, validationOptions } from "../options/sampling.js";

const { shape: sampling } = samplingOptions;
const { shape: validation } = validationOptions;
const { shape: environment } = environmentOptions;
const { shape: turns } = multiTurnOptions;
const { shape: agentShape } = agentOptions;
const { shape: treeShape } = treeOptions;

const topK = z.int().default(-1).describe("Top-k: sample from this many of the likeliest tokens; -1 or 0: from all.");

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
  temperature: validation.temperature,
  top_p: validation.topP,
  top_k: topK,
  min_p: validation.minP,
  n: validation.n,
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
  n: sampling.n,
  temperature: sampling.temperature,
  top_p: sampling.topP,
  top_k: topK,
  min_p: sampling.minP,
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
  kv_cache_dtype: z
    .enum(["f32", "f16", "q8_0"])
    .default("f32")
    .describe(
      "Type of the cached keys and values: f32, with which sampler and trainer agree to the last bit; f16 and q8_0 take 1/2 and 1/4 of the memory, and the sampler's logprobs differ by 2e-2 and more, which training/rollout_probs_diff_max counts and algorithm.rollout_correction corrects (rollout_is: token, by default).",
    ),
  seed: runOptions.shape.seed,
  deterministic: z
    .boolean()
    .default(true)
    .describe("The same seed gives the same bits, however conversations are batched; false: a little faster."),
  partial_rollout: aheadOptions.shape.partialRollout,
  tree: tree.prefault({}),
  on_failure: environment.onFailure,
  multi_turn: multiTurn.prefault({}),
  agent: agent.prefault({}),
  branch_credit: environment.branchCredit,
  train_on_constrained_tokens: environment.trainOnConstrainedTokens,
  val_kwargs: valKwargs.prefault({}),
});
