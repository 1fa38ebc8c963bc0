import type { LoadedImage } from "./images/image-source.js";
import type { ChatMessage, ToolSchema } from "./messages.js";

/**
 * Why a trajectory ended. stop: nobody had anything to add. length: no token was left. tool_calls: the policy called tools, and
 * no turn was left to answer it. aborted: the run or the environment ended it.
 */
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
  /** Of a tools' turn, a message each: why the call gave no ordinary answer; null where it gave one. */
  failures?: (string | null)[];
}

/** How a conversation went, in time. */
export interface Timeline {
  loop: StateTransition<AgentState>[];
  request: StateTransition<RequestState>[];
  turns: TurnRecord[];
}

/** What a trajectory's reward is made of. In units of reward; the parts add up to the trajectory's `reward`. */
export interface RewardParts {
  /** `trajectory_weight` times the score, or times what `success_reward` or `failure_reward` puts in its place. */
  outcome: number;
  /** `length_penalty` times the number of sampled tokens: 0 or less. */
  length: number;
  /** Step rewards of tools by their weight, and `tool_call_bonus` for each valid call. */
  tools: number;
  /** Scores of interaction turns by their weight, and `interaction_bonus` for each above 0. */
  turns: number;
  /** All of it where it was earned, as long as the trajectory's tokens: 0 where responseMask is 0. */
  tokenLevel: Float64Array;
}

/** What one judge says of a trajectory. Its `score` is the sum of weight times value over such parts. */
export interface ScorePart {
  /** Unique among the parts of a score. */
  name: string;
  value: number;
  weight: number;
  /** Who gave it, in words: a reward function, a data source's rule, a reward model, the interaction, the tools. */
  by: string;
}

/** What was judged, and the reward that was made of it. Nothing but `reward` itself (their sum) is trained on. */
export interface TrajectoryRewards extends RewardParts {
  /**
   * Of the reward function, else `interactionScore`, else `toolScore`; with reward models the weighted sum. Null when the
   * conversation failed or could not be judged.
   */
  score: number | null;
  /** What `score` is made of, and who gave it. Empty when it is null. */
  parts: readonly ScorePart[];
  /** Whether the goal was reached: `acc` of the reward function, else a score above 0. Null when `score` is. */
  success: boolean | null;
  /** Sum over the tools of calcReward; null when no tool has one, or one failed. */
  toolScore: number | null;
  /** The interaction's calculateScore; null when there was no interaction, or it failed. */
  interactionScore: number | null;
}

/**
 * A stretch of a trajectory's tokens that follows another stretch, as the message graph of an agent has branches. Segments lie end
 * to end, each after the one that it follows.
 */
export interface TrajectorySegment {
  /** Its tokens: `[start, end)` of the trajectory. */
  start: number;
  end: number;
  /** Index of the segment that it follows; -1: it begins a conversation. */
  parent: number;
  /** What its tokens say. */
  messages: ChatMessage[];
}

/** How a conversation's tokens were drawn: with its prompt, the weights and the answers of others it decides every token. */
export interface TrajectorySampling {
  /** Each turn derives its own from it. */
  seed: number;
  /** 0: greedy. */
  temperature: number;
  topP: number;
  topK: number;
  minP: number;
}

/** An image of a trajectory, and its tokens: `[start, start + length)`, marks of the template left out. */
export interface TrajectoryImage {
  image: LoadedImage;
  start: number;
  length: number;
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
  /** Its images, in the order of their tokens. Absent: it has none. */
  images?: readonly TrajectoryImage[];
  /**
   * 1 = sampled by the policy and to be trained on; 0 for prompt, tool, user and template tokens, for tool calls when
   * `train_on_tool_calls` is off, and everywhere in a conversation that failed.
   */
  responseMask: Uint8Array;
  /** As the sampler saw them; 0 where responseMask is 0. */
  rolloutLogprobs: Float32Array;
  /** The conversation; of an agent with several the one whose last answer came last. */
  messages: ChatMessage[];
  /**
   * Of an agent that held several conversations, or had several answers to one: how `tokenIds` hang together. Each token stands
   * there once, whatever it is followed by, and counts once. Left out: `tokenIds` is one conversation.
   */
  segments?: readonly TrajectorySegment[];
  /** Tools of the conversation, where an agent brought its own. */
  toolSchemas?: readonly ToolSchema[];
  finishReason: FinishReason;
  /** Assistant turns plus the turns of tools and users after the prompt. */
  numTurns: number;
  /** Score of each interaction turn, and the token index (its turn's last sampled token) where it lands. */
  turnScores: { value: number; tokenIndex: number }[];
  /** Step reward of each tool call, placed likewise. */
  toolRewards: { value: number; tokenIndex: number }[];
  /** What is trained on: the sum of `rewards.tokenLevel`. 0 when the conversation failed. */
  reward: number;
  rewards: TrajectoryRewards;
  metrics: Record<string, number>;
  sampling?: TrajectorySampling;
  /** What the reward function returned beside the score, and what the agent loop added: ragged, free-form. */
  extraFields: Record<string, unknown>;
  timeline?: Timeline;
  /** What went wrong, when the conversation failed or could not be judged. */
  error?: string;
}

/**
 * Whether the environment broke the conversation: an interaction or agent loop that threw, a judge that gave no score, an
 * abort from outside. Such a trajectory teaches nothing: it is left out of its group, of statistics and of the update.
 */
export function hasFailed(trajectory: Pick<Trajectory, "error" | "finishReason">): boolean {
  return trajectory.error !== undefined || trajectory.finishReason === "aborted";
}
