export * from "./agents/index.js";
export * from "./chat/index.js";
export { checkProjector, checkSources } from "./data/check-images.js";
export { DataLoader, type DataLoaderPlace, type DataLoaderState, hashUids } from "./data/data-loader.js";
export { copyRow, type DatasetRow, type ParseRowOptions, parseRow } from "./data/dataset-row.js";
export { filterOverlongPrompts } from "./data/filter-overlong-prompts.js";
export type {
  BufferedGroup,
  GroupPicker,
  GroupRequest,
  GroupSampler,
  GroupSamplerClass,
  GroupSamplerOptions,
} from "./data/group-sampler.js";
export {
  type ConvertedFile,
  convertGsm8k,
  convertGsm8kRecord,
  type Gsm8kShape,
  type Gsm8kSplit,
  gsm8kShapes,
} from "./data/gsm8k.js";
export { type LoadDatasetOptions, loadDataset } from "./data/load-dataset.js";
export { loadExport } from "./data/load-export.js";
export { loadRow } from "./data/load-row.js";
export { groupSamplers, makeGroupSampler, pickGroups } from "./data/make-group-sampler.js";
export { makeRowSampler, pickRows, rowSamplers } from "./data/make-row-sampler.js";
export { mapRecord, type RowMap } from "./data/map-record.js";
export { messageSchema } from "./data/message-schema.js";
export { haveImages, placeImages, readImages } from "./data/place-images.js";
export { type MeasureOptions, measurePrompts } from "./data/prompt-lengths.js";
export { type DatasetRecord, readRecords } from "./data/read-records.js";
export { checkDatasetClass, type DatasetClass, RolloutDataset } from "./data/rollout-dataset.js";
export type {
  PickedRow,
  PickRequest,
  RowOutcome,
  RowPicker,
  RowSampler,
  RowSamplerClass,
  RowSamplerOptions,
  StepOutcome,
} from "./data/row-sampler.js";
export { countConversations, isSampleCount, MOST_SAMPLES, sampleOnce, samplesOf } from "./data/row-samples.js";
export { listToolSchemas, selectTools } from "./data/select-tools.js";
export { type ParquetField, type ParquetFields, writeParquet } from "./data/write-parquet.js";
export { findImages, hideVectors, showVectors, VECTOR } from "./images/find-images.js";
export { type ImageAccess, loadContent, loadMessages } from "./images/load-content.js";
export { prepareImages } from "./images/prepare-images.js";
export { fitPrompt, type Truncation } from "./loops/fit-prompt.js";
export * from "./loops/index.js";
export { describeData, toPlainData } from "./plain-data.js";
export {
  averageExtras,
  type BatchRewardFunction,
  computeOverlongPenalty,
  countPromptMessages,
  type EarnedRewards,
  extractFinalAnswer,
  type FoundToolCalls,
  findToolCalls,
  finishTrajectory,
  type Judgement,
  makeRewardManager,
  makeRewardRequest,
  maskToolCalls,
  type OverlongBuffer,
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
  rewardFunctions,
  rewardManagers,
  scoreFinalAnswer,
} from "./rewards/index.js";
export { takeTurn } from "./take-turn.js";
export * from "./tracing/index.js";
