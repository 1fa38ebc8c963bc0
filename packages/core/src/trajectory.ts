import type { ChatMessage } from "./messages.js";

/** Why a trajectory ended. */
export type FinishReason = "stop" | "length" | "tool_calls" | "aborted";

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
  /** 1 = sampled by the policy; 0 for prompt, tool, user and template tokens. */
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
}
