import type {
  AgentState,
  ChatMessage,
  FinishReason,
  ImageMimeType,
  RequestState,
  ScorePart,
  ToolSchema,
  TrajectoryBranch,
  TrajectorySegment,
} from "@cria/core";

/** Version of the written format; docs/dump.md describes it. Lines without `format_version` have version 1. */
export const DUMP_FORMAT_VERSION = 4;

/** A stretch of tokens with one mask, inside one turn, as text. */
export interface DumpSpan {
  /** Index of its first token, from the start of the prompt; the span ends where the next one starts. */
  start: number;
  /** 1 = sampled by the policy and trained on. */
  mask: 0 | 1;
  text: string;
  /** For an image's tokens: index into `images`. `text` then holds the marks around its vectors. */
  image?: number;
  /**
   * End of each token's text within `text`, in UTF-16 units; a character made of several tokens belongs to the last.
   * Missing in older versions and for images.
   */
  ends?: number[];
}

/** An image of a conversation; its file is `images/<hash>.<png, jpg, webp, bmp or gif>` beside the dump. */
export interface DumpImage {
  /** SHA-256 of the file. */
  hash: string;
  /** In pixels. */
  width: number;
  height: number;
  mime_type: ImageMimeType;
  /** Range of its tokens: `start` from the start of the prompt, `length` in tokens. */
  start: number;
  length: number;
}

/** An agent's request for a turn, see TurnCall. */
export interface DumpCall {
  messages: number;
  sibling: number;
  last?: true;
  tools?: readonly ToolSchema[];
  /**
   * Those options among `tool_choice`, `response_format`, `max_tokens`, `stop`, `top_logprobs`, `choice`, `role`
   * that it gave.
   */
  request: Readonly<Record<string, unknown>>;
}

/** One turn after the prompt. Token indices count from the start of the prompt. */
export interface DumpTurn {
  role: "assistant" | "tool" | "user";
  start: number;
  end: number;
  /** For an assistant's turn: number of calls, and their token range. */
  tool_calls?: { count: number; start: number; end: number };
  /** For a turn of tools: kind of failure of each call; null if it did not fail. */
  failures?: (string | null)[];
  /** For a turn of others: the tools' name of the environment's state, if given. */
  state?: string;
  /**
   * For an assistant's turn: number of weight updates that its policy had had, plus 1. Missing where the policy that
   * samples the step sampled it (`rollout.partial_rollout: carry_on`).
   */
  policy_version?: number;
  /** For an assistant's turn: the model that sampled it in place of the policy (`distillation.guided`). */
  sampled_by?: "teacher";
  /** For an assistant's turn of an agent: the policy call behind it. Missing in runs of earlier versions. */
  call?: DumpCall;
  /** Milliseconds since 1970; written by `cria rollout` and `trainer.rollout_data_detail: full`. */
  started_at?: number;
  ended_at?: number;
}

/** A conversation as one line of a dump. Version 1 lacks many fields: they are then null, or empty lists. */
export interface DumpLine {
  format_version: number;
  /** Training step; 0: before training; null: no training. */
  step: number | null;
  /** Identifies the group: conversations of one prompt share it. */
  uid: string;
  /** Index of the sample in its group, from 0. */
  sample: number;
  /** Position of the row in its dataset, before filtering. */
  row: number | null;
  /** Name of the row's file, and its line or row. */
  place: string | null;
  data_source: string;
  ground_truth: unknown;
  /** Null if the conversation failed. */
  reward: number | null;
  score: number | null;
  success: boolean | null;
  /** Parts of the score, which is the sum of weight times value. */
  parts: ScorePart[];
  /** `outcome`, `length`, `tools` and `turns` add up to the reward. */
  rewards: {
    outcome: number;
    length: number;
    tools: number;
    turns: number;
    tool_score: number | null;
    interaction_score: number | null;
  };
  /** Further values of the reward function and the agent loop. */
  extra: Record<string, unknown>;
  /** Mean over the sampled tokens; null if nothing was learned from the conversation. */
  advantage: number | null;
  error: string | null;
  finish_reason: FinishReason;
  num_turns: number;
  /** Images are records here; `DumpImages` reads their files. */
  messages: ChatMessage[];
  /** Token ranges of images, in order. Left out: no images. */
  images?: DumpImage[];
  /** For an agent with several conversations: the tree that `token_ids` form, see TrajectorySegment. */
  segments?: TrajectorySegment[];
  /** Number of prompt messages at the start of `messages`. */
  prompt_messages: number;
  /** Names of the tools available to it. */
  tools: string[];
  /** Schemas of its tools, except those that an earlier line of the file describes. */
  tool_schemas: ToolSchema[];
  /** In tokens. */
  prompt_length: number;
  /** -1 for image vectors, whose ids are only valid within one process. */
  token_ids: number[];
  response_mask: number[];
  token_level_rewards: number[];
  rollout_logprobs: number[];
  /** Sampling parameters; missing in runs of earlier versions. */
  sampling?: {
    seed: number;
    temperature: number;
    top_p: number;
    top_k: number;
    min_p: number;
    /** Seeds of the first turns, if the conversation took them over from another one of its tree. */
    earlier_seeds?: number[];
  };
  /** Measured values of its turns without the last one (`adv_estimator: vine`); null: no continuation was judged. */
  turn_values?: (number | null)[];
  /** Its place in a tree of rollouts (`rollout.tree`), see TrajectoryBranch. */
  branch?: TrajectoryBranch;
  /**
   * With `trainer.rollout_data_detail: full`; null if not computed. As long as `token_ids`, 0 at tokens that were
   * not sampled.
   */
  old_logprobs?: number[] | null;
  ref_logprobs?: number[] | null;
  /** Present in runs with a teacher. */
  teacher_logprobs?: number[] | null;
  advantages?: number[] | null;
  /** In nats: entropy of the distribution that the token was drawn from, computed by the trainer. */
  entropy?: number[] | null;
  /** The whole text, template included. */
  spans: DumpSpan[];
  turns: DumpTurn[];
  turn_scores: { value: number; token_index: number }[];
  tool_rewards: { value: number; token_index: number }[];
  metrics: Record<string, number>;
  /** The earlier judgement, before `cria rescore`. */
  before?: Pick<DumpLine, "reward" | "score" | "success" | "parts" | "extra" | "error">;
  /** State transitions with their times, if the turns have times. */
  loop_states?: { state: AgentState; at: number }[];
  request_states?: { state: RequestState; at: number }[];
}
