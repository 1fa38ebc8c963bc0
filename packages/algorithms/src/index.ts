export type { StepReward } from "@cria/core";
export {
  type AdvantageEstimator,
  type AdvantageInputs,
  type AdvantageOutputs,
  advantageEstimators,
  type BranchSegment,
  type CostlyInput,
  type CostlyInputs,
  costlyInputs,
  defineEstimator,
  type EstimatorDefinition,
  type EstimatorName,
  type EstimatorState,
  estimateGrpo,
  explainVariance,
  type RewardPart,
} from "./advantages/index.js";
export { type AggregateInputs, type Aggregation, type AggregationName, aggregations } from "./aggregate.js";
export { type AggregateRewardInputs, aggregateReward, type RewardAggregation } from "./aggregate-reward.js";
export type { Algorithms } from "./algorithms.js";
export { composePolicyLoss } from "./compose-policy-loss.js";
export { crossEntropyLoss } from "./cross-entropy.js";
export { keepTopVariance, keepVaryingGroups } from "./filter-groups.js";
export { type KlEstimate, type KlName, klEstimates } from "./kl.js";
export { KlController, type KlControllerOptions } from "./kl-controller.js";
export { type KlInRewardInputs, type KlInRewardOutputs, penalizeRewards } from "./kl-in-reward.js";
export {
  type MiniBatch,
  type PolicyLoss,
  type PolicyLossInputs,
  type PolicyLossName,
  type PolicyLossParameters,
  type PolicyLossTerms,
  policyLosses,
  type TokenLoss,
} from "./losses/index.js";
export { losses } from "./make-loss.js";
export { maskedMean, maskedVariance, maskedWhiten } from "./masked.js";
export { type PolicyFiltration, resampleByScore, reweightMethods } from "./pf-ppo.js";
export { type PlaceRewardsInputs, placeRewards } from "./place-rewards.js";
export { defaultPolicyLoss, type PolicyLossOptions } from "./policy-loss-options.js";
export { preparePolicyLoss } from "./prepare-policy-loss.js";
export { parseRejectionRules, type RejectionRule } from "./rejection-rules.js";
export { type RewardStrategy, type RewardStrategyInputs, rewardStrategies } from "./reward-strategies.js";
export { correctRollout, type RolloutCorrectionOptions, type RolloutCorrectionOutputs } from "./rollout-correction.js";
export type { RolloutCorrectionInputs } from "./rollout-divergence.js";
export type { TeacherTermOptions } from "./teacher-term.js";
export type { LossTerm, LossTermValues } from "./terms/loss-term.js";
export { lossTerms } from "./terms/loss-terms.js";
export type { TokenKind } from "./terms/token-kinds.js";
export { composeValueLoss, type ValueLossOptions } from "./value-loss.js";
