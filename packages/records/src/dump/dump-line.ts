import type {
  AgentState,
  ChatMessage,
  FinishReason,
  ImageMimeType,
  RequestState,
  ScorePart,
  ToolSchema,
  TrajectorySegment,
} from "@cria/core";

/** Version of the format that is written; docs/dump.md describes it. Lines without `format_version` are version 1. */
export const DUMP_FORMAT_VERSION = 4;

/** A stretch of tokens with one mask, inside one turn, as text. */
export interface DumpSpan {
  /** Index of its first token, from the start of the prompt; it ends where the next one starts. */
  start: number;
  /** 1 = sampled by the policy and trained on. */
  mask: 0 | 1;
  text: string;
  /** Of an image's tokens: its index in `images`. The text is that of the marks around its vectors. */
  image?: number;
  /**
   * Where the text of each of its tokens ends in `text`, in UTF-16 units; a character that several tokens make up is the last one's.
   * Older versions and images lack it.
   */
  ends?: number[];
}

/** An image of a conversation; its file is `images/<hash>.<png, jpg, bmp or gif>` beside the dump. */
export interface DumpImage {
  /** SHA-256 of the file. */
  hash: string;
  /** In pixels. */
  width: number;
  height: number;
  mime_type: ImageMimeType;
  /** Its tokens: `length` of them, from the start of the prompt. */
  start: number;
  length: number;
}

/** What an agent asked to be given a turn, see TurnCall. */
export interface DumpCall {
  messages: number;
  sibling: number;
  last?: true;
  tools?: readonly ToolSchema[];
  /** `tool_choice`, `response_format`, `max_tokens`, `stop`, `top_logprobs`, `choice`: those that it gave. */
  request: Readonly<Record<string, unknown>>;
}

/** One turn after the prompt. Token indices count from the start of the prompt. */
export interface DumpTurn {
  role: "assistant" | "tool" | "user";
  start: number;
  end: number;
  /** Of an assistant's turn: its calls, and their tokens. */
  tool_calls?: { count: number; start: number; end: number };
  /** For each message of a tools' turn: why the call gave no ordinary answer; null if it gave one. */
  failures?: (string | null)[];
  /** Of a turn of others: name of the state that it shows, where somebody gave one. */
  state?: string;
  /** Of an agent's assistant turn: the call of the policy that gave it. Runs of earlier versions do not say it. */
  call?: DumpCall;
  /** Milliseconds since 1970; `cria rollout` and `trainer.rollout_data_detail: full` write them. */
  started_at?: number;
  ended_at?: number;
}

/**
 * A conversation as one line of a dump. Lines of version 1 lack much of it: what they cannot say is null, or empty where it is a
 * list.
 */
export interface DumpLine {
  format_version: number;
  /** Step of the training; 0: before it; null: no training. */
  step: number | null;
  /** Group: conversations of one prompt share it. */
  uid: string;
  /** Which of the group's samples it is, from 0. */
  sample: number;
  /** Position of the row in its dataset, before any rows were left out. */
  row: number | null;
  /** Name of the file and line, or row, that it came from. */
  place: string | null;
  data_source: string;
  ground_truth: unknown;
  /** Null when the conversation failed. */
  reward: number | null;
  score: number | null;
  success: boolean | null;
  /** The parts of the score, which is the sum of weight times value. */
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
  /** Of images they have the record; `DumpImages` reads their files. */
  messages: ChatMessage[];
  /** Where images stand among the tokens, in their order. Left out: there are none. */
  images?: DumpImage[];
  /** Of an agent with several conversations: how `token_ids` hang together, see TrajectorySegment. */
  segments?: TrajectorySegment[];
  /** How many of `messages` are the prompt's. */
  prompt_messages: number;
  /** Names of the tools that it could call. */
  tools: string[];
  /** Schemas of those of its tools that no earlier line of the file describes. */
  tool_schemas: ToolSchema[];
  /** In tokens. */
  prompt_length: number;
  /** -1 for the vectors of images, which have no ids outside of a process. */
  token_ids: number[];
  response_mask: number[];
  token_level_rewards: number[];
  rollout_logprobs: number[];
  /** How its tokens were drawn; runs of earlier versions do not say it. */
  sampling?: { seed: number; temperature: number; top_p: number; top_k: number; min_p: number };
  /** With `trainer.rollout_data_detail: full`; null where they were not computed. As long as `token_ids`, 0 where nothing was sampled. */
  old_logprobs?: number[] | null;
  ref_logprobs?: number[] | null;
  advantages?: number[] | null;
  /** In nats, of the distribution that the token was drawn from, by the trainer. */
  entropy?: number[] | null;
  /** The whole text, template included. */
  spans: DumpSpan[];
  turns: DumpTurn[];
  turn_scores: { value: number; token_index: number }[];
  tool_rewards: { value: number; token_index: number }[];
  metrics: Record<string, number>;
  /** What was said of the conversation before it was judged again (`cria rescore`). */
  before?: Pick<DumpLine, "reward" | "score" | "success" | "parts" | "extra" | "error">;
  /** Where turns have times. */
  loop_states?: { state: AgentState; at: number }[];
  request_states?: { state: RequestState; at: number }[];
}
