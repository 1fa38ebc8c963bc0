import { agentLoops } from "@cria/rollout";
import { toolFormats } from "@cria/tools";
import { z } from "zod";

/** Which of the likeliest tokens are sampled from, in training and in validation. */
const sampledFrom = {
  top_p: z
    .number()
    .gt(0)
    .max(1)
    .default(1)
    .describe("Top-p: sample from the likeliest tokens whose probabilities add up to this."),
  top_k: z.int().default(-1).describe("Top-k: sample from this many of the likeliest tokens; -1 or 0: from all."),
  min_p: z
    .number()
    .min(0)
    .lt(1)
    .default(0)
    .describe(
      "Min-p: do not sample tokens whose probability is below this share of the likeliest token's; 0: no limit.",
    ),
};

const multiTurn = z.strictObject({
  enable: z.boolean().default(true).describe("false: one turn, without tools and interactions."),
  max_assistant_turns: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Most turns of the model in a conversation; null: as many as its tokens allow."),
  max_user_turns: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Most answers of tools and of the interaction, together; null: as many as the tokens allow."),
  tool_config_path: z
    .string()
    .nullable()
    .default(null)
    .describe("A YAML file of tools: tools: [{ class_name, config?, tool_schema? }]."),
  interaction_config_path: z
    .string()
    .nullable()
    .default(null)
    .describe("A YAML file of interactions: interaction: [{ name?, class_name, config? }]."),
  interaction_interval: z
    .int()
    .positive()
    .default(1)
    .describe("An interaction answers when the number of assistant turns is a multiple of this."),
  interaction_prob: z.number().min(0).max(1).default(1).describe("Probability that it then answers."),
  max_parallel_calls: z
    .int()
    .positive()
    .default(1)
    .describe("Most tool calls of one turn that are run; the others get an error to read."),
  max_tool_response_length: z
    .int()
    .positive()
    .default(256)
    .describe("Most tokens of a tool's answer; the rest is cut."),
  max_tool_response_chars: z
    .int()
    .min(0)
    .default(0)
    .describe("Most characters of a tool's answer, before its tokens are counted; 0: no limit."),
  tool_response_truncate_side: z
    .enum(["left", "middle", "right"])
    .default("middle")
    .describe("Where a tool's answer is cut."),
  format: z.string().default("hermes").meta({
    description: 'How the model writes tool calls: a parser\'s name, or "./module.ts#parse".',
    examples: toolFormats.names(),
  }),
  tokenization_sanity_check_mode: z
    .enum(["strict", "ignore_strippable", "disable"])
    .default("strict")
    .describe(
      "Compare each conversation's tokens with the whole rendered again: exactly, but for white space, or not.",
    ),
  tool_timeout_s: z
    .number()
    .positive()
    .default(30)
    .describe(
      "Seconds for each call of a tool or an interaction; the time that it waits for a sandbox does not count.",
    ),
  use_inference_chat_template: z
    .boolean()
    .default(false)
    .describe("Each turn sees what the chat template renders in production, where it rewrites earlier turns too."),
  train_on_tool_calls: z.boolean().default(true).describe("false: the text of tool calls is not trained on."),
  num_repeat_rollouts: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Samples of each prompt in training; null: rollout.n."),
});

const valKwargs = z.strictObject({
  do_sample: z.boolean().default(false).describe("false: greedy, whatever temperature says."),
  temperature: z.number().min(0).default(1).describe("Sampling temperature, with do_sample."),
  ...sampledFrom,
  n: z.int().positive().default(1).describe("Samples of each prompt."),
});

const agent = z.strictObject({
  default_agent_loop: z
    .string()
    .default("tool_agent")
    .meta({ description: "The loop of rows that name none (agent_name).", examples: agentLoops.names() }),
  agent_loop_config_path: z
    .string()
    .nullable()
    .default(null)
    .describe("A YAML file of your own loops: agent_loops: [{ name, class_name, config? }]."),
  timeout_s: z
    .number()
    .positive()
    .nullable()
    .default(600)
    .describe(
      "Seconds that an episode of an agent may take that calls the policy by itself; null: no limit. It then failed.",
    ),
  max_calls: z
    .int()
    .positive()
    .default(100)
    .describe(
      "Most calls of the policy in such an episode, unless multi_turn.max_assistant_turns says so. One more ends it.",
    ),
});

export const rolloutSection = z.strictObject({
  n: z.int().positive().default(8).describe("Conversations sampled of each prompt in training."),
  temperature: z
    .number()
    .positive()
    .default(1)
    .describe("Sampling temperature in training; logprobs are computed at this temperature."),
  ...sampledFrom,
  stop: z
    .union([z.string(), z.array(z.string())])
    .transform((given) => [given].flat())
    .refine((texts) => texts.every((text) => text !== ""), "texts that are not empty")
    .default([])
    .describe(
      "Texts that end a turn, in training and validation. Each stays in it and is trained on; the end-of-turn token then comes with what follows, not trained on.",
    ),
  max_tokens_per_turn: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe(
      "Most tokens of one turn, in training and validation; null: what is left of the response. A turn that is cut is final, unless it has a complete tool call or an interaction is due.",
    ),
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
  on_failure: z
    .enum(["drop", "refill", "error"])
    .default("drop")
    .describe(
      "What follows when the environment or a judge breaks a conversation: an interaction or agent loop that throws, a reward function, reward model, calculateScore or calcReward that throws or takes too long. drop: the conversation is left out of its group, of statistics and of updates. refill: it is sampled again, three times at most, then dropped. error: the run ends. What the policy causes (a bad call, its program's time-out, too long an answer, turns used up) is scored in any case. A step in which every conversation failed ends the run.",
    ),
  multi_turn: multiTurn.prefault({}),
  agent: agent.prefault({}),
  branch_credit: z
    .enum(["last_branch", "all_branches", "nodes"])
    .default("all_branches")
    .describe(
      "Which answers an episode's reward teaches, where an agent held several conversations or changed its history. last_branch: those of the conversation whose answer came last. all_branches: all. nodes: all, each by the rewards given to it and to what followed it, beside the episode's.",
    ),
  train_on_constrained_tokens: z
    .boolean()
    .default(false)
    .describe("Train also on tokens that a grammar (structured output, a required call) took probability away from."),
  val_kwargs: valKwargs.prefault({}),
});
