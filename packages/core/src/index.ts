export { describeIssue, describeSchema, findSchema, formatValue, withoutLibraryTexts } from "./describe-schema.js";
export { ClusterError } from "./errors/cluster-error.js";
export { ConfigError } from "./errors/config-error.js";
export { CriaError, type ErrorDetails } from "./errors/cria-error.js";
export { DataError } from "./errors/data-error.js";
export { EngineError } from "./errors/engine-error.js";
export { HubError } from "./errors/hub-error.js";
export { TokenizerError } from "./errors/tokenizer-error.js";
export { ToolError } from "./errors/tool-error.js";
export { findNearest } from "./find-nearest.js";
export { guardWrite, suggestWriteRemedy } from "./guard-write.js";
export { hashSeed, makeUniform, shuffleIndices } from "./hash-seed.js";
export type { ChatMessage, JsonSchema, Role, ToolCall, ToolSchema } from "./messages.js";
export type {
  GenerateOptions,
  GenerateResult,
  GenerateStats,
  GradientShard,
  LossFunction,
  LossInputs,
  LossOutputs,
  MicroBatchShard,
  ModelInfo,
  OptimizerOptions,
  PolicyEngine,
  PolicySequence,
  SamplingOptions,
  ScoreOptions,
  ScoreResult,
  ScoreSequence,
  ScoreShard,
  ShardGradient,
  ShardScores,
  SpecialToken,
  TokenCandidate,
  TrainOptions,
  TrainResult,
  TrainSequence,
} from "./policy-engine.js";
export { readOrThrow, type UnreadableDetails } from "./read-or-throw.js";
export { Registry, type RegistryErrors } from "./registry.js";
export type {
  AgentState,
  FinishReason,
  RequestState,
  RewardParts,
  ScorePart,
  StateTransition,
  Timeline,
  Trajectory,
  TrajectoryRewards,
  TrajectorySampling,
  TrajectorySegment,
  TurnRecord,
} from "./trajectory.js";
export { hasFailed } from "./trajectory.js";
export { listPaths, type TrajectoryPath } from "./trajectory-paths.js";
export type { ValueEngine, ValueLossFunction, ValueLossInputs, ValueLossOutputs } from "./value-engine.js";
export { writeFileAtomically } from "./write-file-atomically.js";
