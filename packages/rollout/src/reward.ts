export { averageExtras } from "./rewards/average-extras.js";
export { checkRowHasReward, type PossibleScores } from "./rewards/check-row-has-reward.js";
export { extractFinalAnswer, scoreFinalAnswer } from "./rewards/final-answer.js";
export { type FoundToolCalls, findToolCalls, maskToolCalls } from "./rewards/find-tool-calls.js";
export {
  type EarnedRewards,
  failTrajectory,
  finishTrajectory,
  type RewardAggregator,
} from "./rewards/finish-trajectory.js";
export { computeOverlongPenalty, type OverlongBuffer } from "./rewards/overlong-buffer.js";
export { placeAsEarned } from "./rewards/place-as-earned.js";
export type { BatchRewardFunction, RewardFunction, RewardInfo, RewardResult } from "./rewards/reward-function.js";
export {
  type Judgement,
  makeRewardManager,
  type RewardManager,
  type RewardManagerFactory,
  type RewardManagerOptions,
  type RewardRequest,
  registerRewardManager,
} from "./rewards/reward-manager.js";
export { RewardQueue } from "./rewards/reward-queue.js";
export { findReward, makeUnknownSource, registerReward, routeReward } from "./rewards/reward-registry.js";
export { makeRewardRequest, nameSample } from "./rewards/reward-request.js";
