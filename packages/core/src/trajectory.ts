import type { LoadedImage } from "./images/image-source.js";
import type { ChatMessage, ToolSchema } from "./messages.js";
import type { SamplingOptions } from "./policy-engine.js";

/**
 * Why a trajectory ended. stop: no participant had anything to add. length: the token limit was reached. tool_calls:
 * the policy called tools, and no turn was left to answer them. aborted: the run or the environment ended it.
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
  /** Begin and end of the work on the turn, in milliseconds since 1970. */
  startedAt: number;
  endedAt: number;
  /** Tool calls of an assistant's turn, and the token range from the first one's beginning to the last one's end. */
  toolCalls?: { count: number; start: number; end: number };
  /** For a turn of tools, one entry per message: the reason why the call failed; null if it succeeded. */
  failures?: (string | null)[];
  /**
   * For a turn of others: name of the environment's state that it shows, equal in equal states. Estimators read it
   * (`SampledTurn.state`). Left out: the state has no name.
   */
  state?: string;
  /**
   * For an assistant's turn: number of weight updates that the policy had had which sampled it, plus 1. Left out: the
   * policy that samples the step sampled it.
   */
  policyVersion?: number;
  /** For an assistant's turn: the model that sampled it in place of the policy. Nothing is learned from its tokens. */
  sampledBy?: "teacher";
  /** For an assistant's turn of an agent: the policy call behind it. */
  call?: TurnCall;
}

/**
 * An agent's request for a turn. Together with the conversation before it and the trajectory's seed it determines
 * every token of the turn.
 */
export interface TurnCall {
  /** Number of messages of others since the previous answer, or since the beginning of the conversation. At least 1. */
  messages: number;
  /** Index among the answers to the same request, from 0. */
  sibling: number;
  /** True for the answer that was delivered last in the episode: `messages` is the conversation that it ends. */
  last?: true;
  /** For the first answer of a conversation: its tools. Left out: none, or the conversation began earlier. */
  tools?: readonly ToolSchema[];
  /**
   * Options of the request beside messages and tools: `toolChoice`, `responseFormat`, `maxTokens`, `stop`,
   * `topLogprobs`, `choice`, `role`.
   */
  request: Readonly<Record<string, unknown>>;
}

/** Times of a conversation's state changes. */
export interface Timeline {
  loop: StateTransition<AgentState>[];
  request: StateTransition<RequestState>[];
  turns: TurnRecord[];
}

/** A reward for a step: a tool call or an interaction's turn. */
export interface StepReward {
  value: number;
  /** Index of the token that receives it, in the trajectory's tokens. */
  tokenIndex: number;
}

/** Parts of a trajectory's reward, in units of reward; their sum is the trajectory's `reward`. */
export interface RewardParts {
  /** `trajectory_weight` times the score, or times the replacement by `success_reward` or `failure_reward`. */
  outcome: number;
  /** `length_penalty` times the number of sampled tokens: 0 or less. */
  length: number;
  /** Step rewards of tools by their weight, and `tool_call_bonus` for each valid call. */
  tools: number;
  /** Scores of interaction turns by their weight, and `interaction_bonus` for each above 0. */
  turns: number;
  /** The whole reward at the tokens that earned it, as long as the trajectory's tokens: 0 where responseMask is 0. */
  tokenLevel: Float64Array;
}

/** One judge's part of a trajectory's score. `score` is the sum of weight times value over the parts. */
export interface ScorePart {
  /** Unique among the parts of a score. */
  name: string;
  value: number;
  weight: number;
  /** The source, in words: a reward function, a data source's rule, a reward model, the interaction, the tools. */
  by: string;
}

/** The judgement, and the reward computed from it. Only `reward` itself (the parts' sum) is trained on. */
export interface TrajectoryRewards extends RewardParts {
  /**
   * Result of the reward function, else `interactionScore`, else `toolScore`; with reward models the weighted sum. Null
   * when the conversation failed or could not be judged.
   */
  score: number | null;
  /** The parts of `score` with their sources. Empty when it is null. */
  parts: readonly ScorePart[];
  /** True if the goal was reached: `acc` of the reward function, else a score above 0. Null when `score` is null. */
  success: boolean | null;
  /** Sum of calcReward over the tools; null when no tool has one, or one failed. */
  toolScore: number | null;
  /** The interaction's calculateScore; null when there was no interaction, or it failed. */
  interactionScore: number | null;
}

/**
 * A part of a trajectory's tokens that follows another part, as in the branching message graph of an agent. Segments
 * are contiguous, each stored after the one that it follows.
 */
export interface TrajectorySegment {
  /** Its tokens: `[start, end)` of the trajectory. */
  start: number;
  end: number;
  /** Index of the segment that it follows; -1: it begins a conversation. */
  parent: number;
  /** The messages that its tokens encode. */
  messages: ChatMessage[];
}

/**
 * Sampling parameters of a conversation: together with its prompt, the weights and the replies of others they
 * determine every token.
 */
export interface TrajectorySampling extends Required<SamplingOptions> {
  /** Each turn derives its own from it. */
  seed: number;
  /**
   * Seeds of the first turns, in order, if the conversation took them over from another one of its tree (`branch`).
   * Left out: none.
   */
  earlierSeeds?: readonly number[];
}

/**
 * Place of a conversation in a tree of rollouts. The conversations of a tree begin alike: all but the first go on from
 * the end of a turn of another one.
 */
export interface TrajectoryBranch {
  /** Index of the tree in its group, from 0. */
  tree: number;
  /** `sampleIndex` of the conversation that it goes on from; null: it begins at the prompt. */
  parent: number | null;
  /** Number of the parent's assistant turns, with their replies, that it took over; 0: none. */
  turns: number;
  /**
   * Number of tokens before its first own turn, prompt included: they are equal to the parent's. 0 without a parent.
   */
  tokens: number;
}

/** An image of a trajectory, and its token range `[start, start + length)`, without marks of the template. */
export interface TrajectoryImage {
  image: LoadedImage;
  start: number;
  length: number;
}

/** The immutable record of one rollout. Per-token arrays are as long as `tokenIds` (prompt and response). */
export interface Trajectory {
  /** Index of its row in the dataset. */
  rowIndex: number;
  /** Group id, shared by rollouts of one prompt. */
  uid: string;
  /** Index of this sample in its group, from 0. */
  sampleIndex: number;
  dataSource: string;
  /** Prompt and everything after it. */
  tokenIds: Int32Array;
  promptLength: number;
  /** Left out: Cria sampled its tokens. True: a user's agent loop laid it out, with the logprobs that it gives. */
  ownLoop?: true;
  /** Its images, in the order of their tokens. Absent: none. */
  images?: readonly TrajectoryImage[];
  /**
   * 1 = sampled by the policy and to be trained on; 0 for prompt, tool, user and template tokens, for tool calls when
   * `train_on_tool_calls` is off, and everywhere in a conversation that failed.
   */
  responseMask: Uint8Array;
  /** Logprobs reported by the sampler; 0 where responseMask is 0. */
  rolloutLogprobs: Float32Array;
  /** The conversation; if an agent held several, the one with the latest answer. */
  messages: ChatMessage[];
  /**
   * For an agent that held several conversations, or got several answers to one: the tree that `tokenIds` form. Each
   * token is stored and counted once, however many branches follow it. Absent: `tokenIds` is one conversation.
   */
  segments?: readonly TrajectorySegment[];
  /** Tools of the conversation, if an agent provided them. */
  toolSchemas?: readonly ToolSchema[];
  finishReason: FinishReason;
  /** Assistant turns plus the turns of tools and users after the prompt. */
  numTurns: number;
  /** Score of each interaction turn, on the turn's last sampled token. */
  turnScores: StepReward[];
  /** Reward of each tool call, assigned in the same way. */
  toolRewards: StepReward[];
  /** The reward for training: the sum of `rewards.tokenLevel`. 0 when the conversation failed. */
  reward: number;
  rewards: TrajectoryRewards;
  metrics: Record<string, number>;
  sampling?: TrajectorySampling;
  /**
   * Measured values of its turns, in order and without the last one: of each the mean reward of conversations that went
   * on from its end; null if all of them failed. Absent: they were not measured.
   */
  turnValues?: readonly (number | null)[];
  /** Its place in a tree of rollouts. Absent: it belongs to none. */
  branch?: TrajectoryBranch;
  /** Additional results of the reward function, and fields of the agent loop: ragged, free-form. */
  extraFields: Record<string, unknown>;
  timeline?: Timeline;
  /** The error, when the conversation failed or could not be judged. */
  error?: string;
}

/**
 * True if the environment broke the conversation: an interaction or agent loop that threw, a judge that gave no
 * score, an external abort. Such a trajectory is left out of its group, of statistics and of the update.
 */
export function hasFailed(trajectory: Pick<Trajectory, "error" | "finishReason">): boolean {
  return trajectory.error !== undefined || trajectory.finishReason === "aborted";
}
