import { z } from "zod";

/** One model that scores finished conversations, by a GGUF in this process or by a server. */
const rewardModelEntry = z
  .strictObject({
    /** In metrics: `reward_extra/<name>_score/mean`. null: rm, or rm_0, rm_1, ... of several. */
    name: z
      .string()
      .regex(/^[A-Za-z]\w*$/, "a name of letters, digits and _")
      .nullable()
      .default(null),
    /**
     * judge: writes a verdict, from which the score is read. yes_no: the probability of "yes" against "no" as its answer.
     * score_head: the output of a trained head on the last token.
     */
    type: z.enum(["judge", "yes_no", "score_head"]).default("judge"),
    /** A GGUF. Either this or base_url. */
    path: z.string().nullable().default(null),
    /** Of score_head: a safetensors file with score.weight, of the model that the GGUF was made from. */
    head_path: z.string().nullable().default(null),
    /** A server with OpenAI's chat completions, up to and without /chat/completions. Not for score_head. */
    base_url: z.url().nullable().default(null),
    /** The server's name of the model. */
    model: z.string().default("default"),
    /** The environment variable that holds the server's key. */
    api_key_env: z.string().default("OPENAI_API_KEY"),
    /** Further attempts after a network error, HTTP 429 or 5xx. */
    num_retries: z.int().min(0).default(2),
    /** Seconds before the first further attempt; doubled for each one after. */
    retry_delay_s: z.number().min(0).default(0.5),
    /** The reward is the sum of weight times score, over the models and the rules (`rule_weight`). */
    weight: z.number().default(1),
    /** Seconds for each conversation; null: `reward_model.timeout_s`. What takes longer fails (rollout.on_failure). */
    timeout_s: z.number().positive().nullable().default(null),
    /** A Jinja file; null: the default of the type. Variables: see the README. Not for score_head. */
    prompt_template_path: z.string().nullable().default(null),
    /** Of judge: a regular expression whose first group is the score; its last match counts. */
    score_pattern: z.string().default('score[\\s:=*"]{0,6}(-?\\d+(?:\\.\\d+)?)'),
    /** Of judge: what it may give. The score is (given - min) / (max - min). */
    min_score: z.number().default(0),
    max_score: z.number().default(10),
    /** Of judge. */
    max_tokens: z.int().positive().default(512),
    temperature: z.number().min(0).default(0),
    /** Of yes_no: the two answers. */
    yes: z.string().min(1).default("Yes"),
    no: z.string().min(1).default("No"),
    /** Tokens of prompt and verdict, with a GGUF. */
    max_model_len: z.int().positive().default(4096),
    /** Conversations judged at once. */
    max_num_seqs: z.int().min(1).max(256).default(8),
    apply_chat_template_kwargs: z.record(z.string(), z.unknown()).default({}),
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
