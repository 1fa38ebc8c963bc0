export {
  type AgentLoop,
  type AgentLoopContext,
  type AgentLoopFactory,
  type AgentLoopOutput,
  defaultMultiTurn,
  getAgentLoop,
  type MultiTurnOptions,
  registerAgentLoop,
  type SamplingParams,
} from "./agent-loop.js";
export { DataLoader, type DataLoaderState } from "./data-loader.js";
export { type DatasetRow, parseRow } from "./dataset-row.js";
export { fitPrompt, type Truncation } from "./fit-prompt.js";
export { hashSeed, makeUniform, shuffleIndices } from "./hash-seed.js";
export { type LoadDatasetOptions, loadDataset, readRecords } from "./load-dataset.js";
export {
  extractFinalAnswer,
  type RewardFunction,
  type RewardResult,
  registerReward,
  routeReward,
  scoreFinalAnswer,
} from "./reward.js";
export { type RolloutOptions, runRollouts } from "./run-rollouts.js";
export { Semaphore } from "./semaphore.js";
export { type AgentState, ToolAgentLoop } from "./tool-agent-loop.js";
export { type TruncateSide, truncateText } from "./truncate-text.js";
