import type { ChatMessage, FinishReason, LoadedImage } from "@cria/core";

export type RewardResult = number | { score: number; [extra: string]: unknown };

/** What a reward function learns beside the sampled text: the row's `extra_info`, and how the conversation went. */
export interface RewardInfo extends Record<string, unknown> {
  /** The whole conversation, the prompt included. */
  messages: ChatMessage[];
  /** Assistant turns plus the turns of tools and users after the prompt. */
  numTurns: number;
  finishReason: FinishReason;
  /** Step reward of each tool call, and the index of the token where it lands, from the start of the prompt. */
  toolRewards: { value: number; tokenIndex: number }[];
  /** Score of each interaction turn, likewise. */
  turnScores: { value: number; tokenIndex: number }[];
  /** Sum over the tools of calcReward; null when no tool has one, or one failed. */
  toolScore: number | null;
  /** The interaction's calculateScore; null when there was no interaction, or it failed. */
  interactionScore: number | null;
  /** The prompt as the model saw it, with `data.return_full_prompt`. */
  full_prompt?: string;
  /** The images of the conversation, the prompt's and those of tools and users, in their order; left out: it has none. */
  images?: LoadedImage[];
}

/**
 * Judges one trajectory. One that throws, takes too long or returns no finite number has not judged it: the conversation
 * then failed, and `rollout.on_failure` says what follows.
 * @param solutionText what the model sampled, and nothing else; the whole conversation is in `extraInfo.messages`.
 * @param kwargs `custom_reward_function.reward_kwargs`.
 * @returns the score, or `{ score, ...extra }`. Extra keys may differ from sample to sample; numbers among them become
 *   metrics, and `acc` (or a boolean) tells success from failure.
 */
export type RewardFunction = (
  dataSource: string,
  solutionText: string,
  groundTruth: unknown,
  extraInfo: RewardInfo,
  kwargs?: Record<string, unknown>,
) => RewardResult | Promise<RewardResult>;

/** Judges all trajectories of a step at once: the same arguments as lists, one result for each. For the manager "batch". */
export type BatchRewardFunction = (
  dataSources: string[],
  solutionTexts: string[],
  groundTruths: unknown[],
  extraInfos: RewardInfo[],
  kwargs?: Record<string, unknown>,
) => RewardResult[] | Promise<RewardResult[]>;
