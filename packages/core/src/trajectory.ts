import type { ChatMessage } from "./messages.js";

/** Why a trajectory ended. */
export type FinishReason = "stop" | "length" | "tool_calls" | "aborted";

/** States of an agent loop. */
export type AgentState = "pending" | "generating" | "processing_tools" | "interacting" | "terminated";

/** States of the request that runs a conversation: queued, in the loop, ended. */
export type RequestState = "pending" | "running" | "tool_calling" | "interacting" | "completed" | "failed";

export interface StateTransition<State extends string = string> {
  state: State;
  /** Milliseconds since 1970, with fractions. */
  at: number;
}

/** One turn after the prompt. */
export interface TurnRecord {
  role: "assistant" | "tool" | "user";
  /** Its tokens: `[start, end)` of the trajectory, template tokens included. Empty when later text replaced them. */
  start: number;
  end: number;
  /** Milliseconds since 1970: when work on the turn began and ended. */
  startedAt: number;
  endedAt: number;
  /** Tool calls of an assistant's turn, and the tokens from the first one's beginning to the last one's end. */
  toolCalls?: { count: number; start: number; end: number };
}

/** How a conversation went, in time. */
export interface Timeline {
  loop: StateTransition<AgentState>[];
  request: StateTransition<RequestState>[];
  turns: TurnRecord[];
}

/** The immutable record of one rollout. Per-token arrays are as long as `tokenIds` (prompt and response). */
export interface Trajectory {
  /** Row of the dataset that it came from. */
  rowIndex: number;
  /** Group: rollouts of one prompt share it. */
  uid: string;
  /** Which of the group's samples this is, from 0. */
  sampleIndex: number;
  dataSource: string;
  /** Prompt, then everything that followed. */
  tokenIds: Int32Array;
  promptLength: number;
  /**
   * 1 = sampled by the policy and to be trained on; 0 for prompt, tool, user and template tokens, for tool calls when
   * `train_on_tool_calls` is off, and everywhere in a conversation that failed.
   */
  responseMask: Uint8Array;
  /** As the sampler saw them; 0 where responseMask is 0. */
  rolloutLogprobs: Float32Array;
  messages: ChatMessage[];
  finishReason: FinishReason;
  /** Assistant turns plus the turns of tools and users after the prompt. */
  numTurns: number;
  /** Score of each interaction turn, and the token index (its turn's last sampled token) where it lands. */
  turnScores: { value: number; tokenIndex: number }[];
  /** Step reward of each tool call, placed likewise. */
  toolRewards: { value: number; tokenIndex: number }[];
  /** Reward of the whole trajectory. */
  reward: number;
  metrics: Record<string, number>;
  /** What reward functions and tools add: ragged, free-form. */
  extraFields: Record<string, unknown>;
  timeline?: Timeline;
  /** What went wrong, when the conversation failed. */
  error?: string;
}

/**
 * Whether the environment broke the conversation: a tool server that was down, an interaction or agent loop that threw, an
 * abort from outside. Such a trajectory teaches nothing: it is left out of its group, of statistics and of the update.
 */
export function hasFailed(trajectory: Pick<Trajectory, "error" | "finishReason">): boolean {
  return trajectory.error !== undefined || trajectory.finishReason === "aborted";
}
