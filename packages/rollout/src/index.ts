export { batchTrajectories } from "./data/batch-trajectories.js";
export { filterOverlongPrompts } from "./data/filter-overlong-prompts.js";
export {
  type ConvertedFile,
  convertGsm8k,
  convertGsm8kRecord,
  type Gsm8kShape,
  type Gsm8kSplit,
  gsm8kShapes,
} from "./data/gsm8k.js";
export { loadExport } from "./data/load-export.js";
export { type MeasureOptions, measurePrompts } from "./data/prompt-lengths.js";
export { type DatasetRecord, readRecords } from "./data/read-records.js";
export { checkDatasetClass, type DatasetClass, RolloutDataset } from "./data/rollout-dataset.js";
export { writeFileAtomically } from "./data/write-atomically.js";
export { type ParquetField, type ParquetFields, writeParquet } from "./data/write-parquet.js";
export { DataLoader, type DataLoaderPlace, type DataLoaderState } from "./data-loader.js";
export { type DatasetRow, type ParseRowOptions, parseRow } from "./dataset-row.js";
export { fitPrompt, type Truncation } from "./fit-prompt.js";
export { hashSeed, makeUniform, shuffleIndices } from "./hash-seed.js";
export { type LoadDatasetOptions, loadDataset } from "./load-dataset.js";
export * from "./loops/index.js";
export {
  averageExtras,
  type BatchRewardFunction,
  checkRowHasReward,
  computeOverlongPenalty,
  type EarnedRewards,
  extractFinalAnswer,
  type FoundToolCalls,
  findReward,
  findToolCalls,
  type Judgement,
  makeRewardManager,
  makeRewardRequest,
  makeUnknownSource,
  maskToolCalls,
  type OverlongBuffer,
  type PossibleScores,
  placeAsEarned,
  type RewardAggregator,
  type RewardFunction,
  type RewardInfo,
  type RewardManager,
  type RewardManagerFactory,
  type RewardManagerOptions,
  RewardQueue,
  type RewardRequest,
  type RewardResult,
  registerReward,
  registerRewardManager,
  routeReward,
  scoreFinalAnswer,
} from "./reward.js";
