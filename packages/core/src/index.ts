export { Batch, type BatchMeta } from "./batch/batch.js";
export type { Column } from "./batch/column.js";
export { DenseColumn } from "./batch/dense-column.js";
export { RaggedColumn } from "./batch/ragged-column.js";
export { deserializeBatch, serializeBatch } from "./batch/serialize-batch.js";
export type { Dtype, TypedArray } from "./batch/typed-array.js";
export { ValueColumn } from "./batch/value-column.js";
export { describeIssue, describeSchema, findSchema, formatValue, withoutLibraryTexts } from "./describe-schema.js";
export { ConfigError } from "./errors/config-error.js";
export { CriaError, type ErrorDetails } from "./errors/cria-error.js";
export { DataError } from "./errors/data-error.js";
export { EngineError } from "./errors/engine-error.js";
export { TokenizerError } from "./errors/tokenizer-error.js";
export { ToolError } from "./errors/tool-error.js";
export type { ChatMessage, JsonSchema, Role, ToolCall, ToolSchema } from "./messages.js";
export type {
  GenerateOptions,
  GenerateResult,
  GenerateStats,
  LossFunction,
  LossInputs,
  LossOutputs,
  ModelInfo,
  OptimizerOptions,
  PolicyEngine,
  PolicySequence,
  SamplingOptions,
  ScoreOptions,
  ScoreResult,
  ScoreSequence,
  SpecialToken,
  TrainOptions,
  TrainResult,
  TrainSequence,
} from "./policy-engine.js";
export type {
  AgentState,
  FinishReason,
  RequestState,
  RewardParts,
  StateTransition,
  Timeline,
  Trajectory,
  TrajectoryRewards,
  TurnRecord,
} from "./trajectory.js";
export { hasFailed } from "./trajectory.js";
export type { ValueEngine, ValueLossFunction, ValueLossInputs, ValueLossOutputs } from "./value-engine.js";
