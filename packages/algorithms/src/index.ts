export { advantageEstimators, estimateGrpo, type OutcomeAdvantage, type OutcomeInputs } from "./advantages.js";
export { type AggregateInputs, type Aggregation, aggregations } from "./aggregate.js";
export {
  type AggregateRewardInputs,
  aggregateReward,
  defaultRewardAggregation,
  type RewardAggregation,
} from "./aggregate-reward.js";
export { composePolicyLoss, defaultPolicyLoss, type PolicyLossOptions } from "./compose-policy-loss.js";
export { crossEntropyLoss } from "./cross-entropy.js";
export { type KlEstimate, klEstimates } from "./kl.js";
export { maskedMean, maskedVariance, maskedWhiten } from "./masked.js";
export { type PlaceRewardsInputs, placeRewards, type StepReward } from "./place-rewards.js";
export { Registry } from "./registry.js";
export { type RewardStrategy, type RewardStrategyInputs, rewardStrategies } from "./reward-strategies.js";
export {
  type ClipOptions,
  type PolicyLoss,
  policyLosses,
  type TokenLoss,
  type TokenLossInputs,
  vanillaLoss,
} from "./token-loss.js";
