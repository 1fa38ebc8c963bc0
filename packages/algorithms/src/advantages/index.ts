export {
  type AdvantageEstimator,
  type AdvantageInputs,
  type AdvantageOutputs,
  type BranchSegment,
  type CostlyInput,
  costlyInputs,
  type EstimatorState,
  type EstimatorTurn,
  type RewardPart,
} from "./advantage-estimator.js";
export { advantageEstimators, type EstimatorName } from "./advantage-estimators.js";
export { creditMultiTrajectories } from "./credit-multi-trajectories.js";
export { creditNodes } from "./credit-nodes.js";
export { type CostlyInputs, defineEstimator, type EstimatorDefinition } from "./define-estimator.js";
export { listTurns, type TurnSource } from "./estimator-turn.js";
export { estimateGae, explainVariance } from "./gae.js";
export { estimateGdpo } from "./gdpo.js";
export { estimateGigpo } from "./gigpo.js";
export { estimateGpg } from "./gpg.js";
export { estimateGrpo } from "./grpo.js";
export { estimateGrpoPassk } from "./grpo-passk.js";
export { estimateMaxRl } from "./max-rl.js";
export { estimateMtGrpo } from "./mt-grpo.js";
export { estimateOpo } from "./opo.js";
export { estimateOptimalTokenBaseline } from "./optimal-token-baseline.js";
export { listGroups } from "./outcome.js";
export { estimateRae } from "./rae.js";
export { estimateReinforcePlusPlus, estimateReinforcePlusPlusBaseline } from "./reinforce-plus-plus.js";
export { estimateRemax } from "./remax.js";
export { estimateRloo } from "./rloo.js";
export { estimateTreeGrpo } from "./tree-grpo.js";
export { estimateVine } from "./vine.js";
