export { averageExtras } from "./rewards/average-extras.js";
export { extractFinalAnswer, scoreFinalAnswer } from "./rewards/final-answer.js";
export { type FoundToolCalls, findToolCalls, maskToolCalls } from "./rewards/find-tool-calls.js";
export { computeOverlongPenalty, type OverlongBuffer } from "./rewards/overlong-buffer.js";
export type { BatchRewardFunction, RewardFunction, RewardResult } from "./rewards/reward-function.js";
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
export {
  finishReward,
  makeRewardRequest,
  type RewardWeights,
} from "./rewards/reward-request.js";
