import type { ChatMessage, FinishReason, LoadedImage, StepReward } from "@cria/core";

export type RewardResult = number | { score: number; [extra: string]: unknown };

/** Information for a reward function beside the sampled text: the row's `extra_info`, and data of the conversation. */
export interface RewardInfo extends Record<string, unknown> {
  /** The whole conversation, the prompt included. */
  messages: ChatMessage[];
  /** Assistant turns plus the turns of tools and users after the prompt. */
  numTurns: number;
  finishReason: FinishReason;
  /** Step reward of each tool call, and the index of the token where it lands, from the start of the prompt. */
  toolRewards: StepReward[];
  /** Score of each interaction turn, and the index of its token, likewise. */
  turnScores: StepReward[];
  /** Sum of the tools' calcReward; null if no tool has one, or one failed. */
  toolScore: number | null;
  /** The interaction's calculateScore; null if there is no interaction, or it failed. */
  interactionScore: number | null;
  /** The prompt as the model saw it, with `data.return_full_prompt`. */
  full_prompt?: string;
  /** Images of the conversation, of the prompt, tools and users, in order; left out: it has none. */
  images?: LoadedImage[];
}

/**
 * Judges one trajectory. If it throws, times out or returns no finite number, the conversation counts as failed and
 * `rollout.on_failure` applies.
 * @param solutionText only the sampled text; the whole conversation is in `extraInfo.messages`.
 * @param kwargs `custom_reward_function.reward_kwargs`.
 * @returns the score, or `{ score, ...extra }`. Extra keys may differ from sample to sample; numeric ones become
 * metrics, and `acc` (or a boolean) decides success.
 */
export type RewardFunction = (
  dataSource: string,
  solutionText: string,
  groundTruth: unknown,
  extraInfo: RewardInfo,
  kwargs?: Record<string, unknown>,
) => RewardResult | Promise<RewardResult>;

/**
 * Judges all trajectories of a step at once: the same arguments as lists, one result per trajectory. For the manager
 * "batch".
 */
export type BatchRewardFunction = (
  dataSources: string[],
  solutionTexts: string[],
  groundTruths: unknown[],
  extraInfos: RewardInfo[],
  kwargs?: Record<string, unknown>,
) => RewardResult[] | Promise<RewardResult[]>;
