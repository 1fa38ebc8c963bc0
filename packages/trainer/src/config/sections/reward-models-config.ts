import { z } from "zod";

/** A model that scores finished conversations: a GGUF in this process, or a server. */
const rewardModelEntry = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z]\w*$/, "a name of letters, digits and _")
      .nullable()
      .default(null)
      .describe("In metrics: reward_extra/<name>_score/mean. null: rm, or rm_0, rm_1, ... of several."),
    type: z
      .enum(["judge", "yes_no", "score_head", "group_rank"])
      .default("judge")
      .describe(
        'judge: writes a verdict, from which the score is read. yes_no: the probability of "yes" against "no" as its answer. score_head: the output of a trained head on the last token. group_rank: sees all conversations of a prompt at once, and ranks them.',
      ),
    path: z.string().nullable().default(null).describe("A GGUF; either this or base_url."),
    head_path: z
      .string()
      .nullable()
      .default(null)
      .describe("With score_head: safetensors file with score.weight, from the model that was converted to the GGUF."),
    base_url: z
      .url()
      .nullable()
      .default(null)
      .describe("A server with OpenAI's chat completions, up to and without /chat/completions. Not for score_head."),
    model: z.string().default("default").describe("The server's name of the model."),
    api_key_env: z.string().default("OPENAI_API_KEY").describe("The environment variable that holds the server's key."),
    num_retries: z.int().min(0).default(2).describe("Further attempts after a network error, HTTP 429 or 5xx."),
    retry_delay_s: z
      .number()
      .min(0)
      .default(0.5)
      .describe("Seconds before the first further attempt; doubled for each one after."),
    weight: z
      .number()
      .default(1)
      .describe("The reward is the sum of weight times score, over the models and the rules (rule_weight)."),
    timeout_s: z
      .number()
      .positive()
      .nullable()
      .default(null)
      .describe(
        "Seconds for each conversation; null: reward_model.timeout_s. A conversation whose call takes longer fails (rollout.on_failure).",
      ),
    prompt_template_path: z
      .string()
      .nullable()
      .default(null)
      .describe("A Jinja file; null: the default of the type. Variables: docs/judges.md. Not for score_head."),
    score_pattern: z
      .string()
      .default('score[\\s:=*"]{0,6}(-?\\d+(?:\\.\\d+)?)')
      .describe("With judge: regular expression whose first group is the score; its last match counts."),
    rubric: z
      .string()
      .min(1)
      .nullable()
      .default(null)
      .describe("With group_rank: criterion for comparing attempts. null: the attempt does what the user asked for."),
    group_output: z
      .enum(["ranks", "scores"])
      .default("ranks")
      .describe(
        "With group_rank: form of the verdict. ranks: of n attempts, rank r scores (n - r) / (n - 1). scores: numbers from min_score to max_score.",
      ),
    max_group_tokens: z
      .int()
      .positive()
      .default(16384)
      .describe(
        "With group_rank: maximum number of tokens of a prompt with the whole group. Long messages are cut in the middle until it fits.",
      ),
    min_score: z
      .number()
      .default(0)
      .describe(
        "With judge and group_rank: lowest score that it may give. The reward is (given - min_score) / (max_score - min_score).",
      ),
    max_score: z.number().default(10).describe("With judge and group_rank: highest score that it may give."),
    max_tokens: z
      .int()
      .positive()
      .default(512)
      .describe("With judge and group_rank: maximum number of tokens of a verdict."),
    temperature: z.number().min(0).default(0).describe("With judge and group_rank: sampling temperature; 0: greedy."),
    yes: z.string().min(1).default("Yes").describe("With yes_no: the answer that scores 1."),
    no: z.string().min(1).default("No").describe("With yes_no: the answer that scores 0."),
    max_model_len: z
      .int()
      .positive()
      .default(4096)
      .describe("Tokens of prompt and verdict, with a GGUF; not of group_rank."),
    max_num_seqs: z.int().min(1).max(256).default(8).describe("Conversations, of group_rank prompts, judged at once."),
    apply_chat_template_kwargs: z
      .record(z.string(), z.unknown())
      .default({})
      .describe("Variables for the model's chat template, for example { enable_thinking: false }."),
  })
  .refine((entry) => (entry.path === null) !== (entry.base_url === null), {
    message: "one of path (a GGUF) and base_url (a server)",
  })
  .refine((entry) => entry.type !== "score_head" || (entry.path !== null && entry.head_path !== null), {
    message: "path and head_path: a head's output is not part of chat completions, nor is a head of a GGUF",
  })
  .refine((entry) => entry.min_score < entry.max_score, {
    path: ["max_score"],
    message: "more than min_score",
  });

/** One mapping, or a list of them. */
export const rewardModelsSchema = z.preprocess(
  (value) => (value === null ? [] : Array.isArray(value) ? value : [value]),
  z.array(rewardModelEntry),
);

export type RewardModelEntry = z.infer<typeof rewardModelEntry>;
