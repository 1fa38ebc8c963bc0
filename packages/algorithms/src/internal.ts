// For the other packages of Cria: names of the package that are no part of its interface, and change without notice. `index.ts` has what
// users' programs need.

export {
  creditMultiTrajectories,
  creditNodes,
  estimateGae,
  estimateGdpo,
  estimateGigpo,
  estimateGpg,
  estimateGrpoPassk,
  estimateMaxRl,
  estimateMtGrpo,
  estimateOpo,
  estimateOptimalTokenBaseline,
  estimateReinforcePlusPlus,
  estimateReinforcePlusPlusBaseline,
  estimateRemax,
  estimateRloo,
  listGroups,
  listTurns,
  type TurnSource,
} from "./advantages/index.js";
export {
  aggregateSeqMeanTokenMean,
  aggregateSeqMeanTokenSum,
  aggregateSeqMeanTokenSumNorm,
  aggregateTokenMean,
  aggregateTokenSum,
} from "./aggregate.js";
export { defaultRewardAggregation } from "./aggregate-reward.js";
export { defaultAlgorithms } from "./algorithms.js";
export { listMissingParameters, needsNoAdvantage, usesReference } from "./compose-policy-loss.js";
export { FORWARD_KL_TOPK } from "./forward-kl-topk.js";
export * from "./index.js";
export {
  cispoLoss,
  clipCovLoss,
  dppoKlLoss,
  dppoTvLoss,
  droLoss,
  geoMeanLoss,
  gpgLoss,
  gspoLoss,
  klCovLoss,
  sapoLoss,
  vanillaLoss,
} from "./losses/index.js";
export { teacherTermDefaults } from "./losses/policy-loss-defaults.js";
export type { Clip, LossTerms } from "./make-loss.js";
export { needsPreparation } from "./prepare-policy-loss.js";
export { correctsTokensAlone, defaultRolloutCorrection } from "./rollout-correction.js";
export { measureDivergence } from "./rollout-divergence.js";
export { countLikeliest, makeTeacherTerm, resolveTeacherTerm, TEACHER_LOGPROBS } from "./teacher-term.js";
export { listTermTokens, type TermTokens } from "./terms/list-terms.js";
export { nameWeights, weighableTerms } from "./terms/loss-term.js";
export { codeOf, TOKEN_KIND } from "./terms/token-kinds.js";
export { defaultValueLoss } from "./value-loss.js";
export { weighTurns } from "./weigh-turns.js";
