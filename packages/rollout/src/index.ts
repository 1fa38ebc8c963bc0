export { DataLoader, type DataLoaderState } from "./data-loader.js";
export { type DatasetRow, parseRow } from "./dataset-row.js";
export { fitPrompt, type Truncation } from "./fit-prompt.js";
export { hashSeed, makeUniform, shuffleIndices } from "./hash-seed.js";
export { type LoadDatasetOptions, loadDataset, readRecords } from "./load-dataset.js";
export * from "./loops/index.js";
export {
  extractFinalAnswer,
  type RewardFunction,
  type RewardResult,
  registerReward,
  routeReward,
  scoreFinalAnswer,
} from "./reward.js";
