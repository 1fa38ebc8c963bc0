export * from "./advantages/index.js";
export {
  type AggregateInputs,
  type Aggregation,
  type AggregationName,
  aggregateSeqMeanTokenMean,
  aggregateSeqMeanTokenSum,
  aggregateSeqMeanTokenSumNorm,
  aggregateTokenMean,
  aggregateTokenSum,
  aggregations,
} from "./aggregate.js";
export {
  type AggregateRewardInputs,
  aggregateReward,
  defaultRewardAggregation,
  type RewardAggregation,
} from "./aggregate-reward.js";
export { type Algorithms, defaultAlgorithms } from "./algorithms.js";
export { composePolicyLoss, defaultPolicyLoss, type PolicyLossOptions } from "./compose-policy-loss.js";
export { crossEntropyLoss } from "./cross-entropy.js";
export { keepVaryingGroups } from "./filter-groups.js";
export { type KlEstimate, type KlName, klEstimates } from "./kl.js";
export { KlController, type KlControllerOptions } from "./kl-controller.js";
export { type KlInRewardInputs, type KlInRewardOutputs, penalizeRewards } from "./kl-in-reward.js";
export * from "./losses/index.js";
export { type Clip, type LossTerms, losses } from "./make-loss.js";
export { maskedMean, maskedVariance, maskedWhiten } from "./masked.js";
export { type PolicyFiltration, resampleByScore, reweightMethods } from "./pf-ppo.js";
export { type PlaceRewardsInputs, placeRewards, type StepReward } from "./place-rewards.js";
export { needsPreparation, preparePolicyLoss } from "./prepare-policy-loss.js";
export { parseRejectionRules, type RejectionRule } from "./rejection-rules.js";
export { type RewardStrategy, type RewardStrategyInputs, rewardStrategies } from "./reward-strategies.js";
export {
  correctRollout,
  defaultRolloutCorrection,
  type RolloutCorrectionOptions,
  type RolloutCorrectionOutputs,
} from "./rollout-correction.js";
export { measureDivergence, type RolloutCorrectionInputs } from "./rollout-divergence.js";
export { composeValueLoss, defaultValueLoss, type ValueLossOptions } from "./value-loss.js";
