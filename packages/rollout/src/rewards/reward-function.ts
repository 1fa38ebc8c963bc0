export type RewardResult = number | { score: number; [extra: string]: unknown };

/**
 * Judges one trajectory.
 * @param solutionText what the model sampled, and nothing else; the whole conversation is in `extraInfo.messages`.
 * @param extraInfo the row's `extra_info`, with `messages`, `numTurns`, `finishReason`, `toolRewards` and `turnScores`.
 * @param kwargs `custom_reward_function.reward_kwargs`.
 * @returns the score, or `{ score, ...extra }`. Extra keys may differ from sample to sample; numbers among them become
 *   metrics, and `acc` (or a boolean) tells success from failure.
 */
export type RewardFunction = (
  dataSource: string,
  solutionText: string,
  groundTruth: unknown,
  extraInfo: Record<string, unknown>,
  kwargs?: Record<string, unknown>,
) => RewardResult | Promise<RewardResult>;

/** Judges all trajectories of a step at once: the same arguments as lists, one result for each. For the manager "batch". */
export type BatchRewardFunction = (
  dataSources: string[],
  solutionTexts: string[],
  groundTruths: unknown[],
  extraInfos: Record<string, unknown>[],
  kwargs?: Record<string, unknown>,
) => RewardResult[] | Promise<RewardResult[]>;
