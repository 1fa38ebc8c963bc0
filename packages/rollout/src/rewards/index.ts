export { averageExtras } from "./average-extras.js";
export { extractFinalAnswer, scoreFinalAnswer } from "./final-answer.js";
export { type FoundToolCalls, findToolCalls, maskToolCalls } from "./find-tool-calls.js";
export {
  type EarnedRewards,
  failTrajectory,
  finishTrajectory,
  type RewardAggregator,
} from "./finish-trajectory.js";
export {
  makeRewardManager,
  type RewardManagerFactory,
  registerRewardManager,
  rewardManagers,
} from "./make-reward-manager.js";
export { computeOverlongPenalty, type OverlongBuffer } from "./overlong-buffer.js";
export { placeAsEarned } from "./place-as-earned.js";
export type { BatchRewardFunction, RewardFunction, RewardInfo, RewardResult } from "./reward-function.js";
export type { Judgement, RewardManager, RewardManagerOptions, RewardRequest } from "./reward-manager.js";
export { RewardQueue } from "./reward-queue.js";
export { registerReward, rewardFunctions } from "./reward-registry.js";
export { countPromptMessages, makeRewardRequest, nameSample } from "./reward-request.js";
