export { contentText, findLastAnswer, listImages } from "./content.js";
export { type Device, devices } from "./device.js";
export { ClusterError } from "./errors/cluster-error.js";
export { ConfigError } from "./errors/config-error.js";
export { CriaError, type ErrorDetails } from "./errors/cria-error.js";
export { DataError } from "./errors/data-error.js";
export { EngineError } from "./errors/engine-error.js";
export { HubError } from "./errors/hub-error.js";
export { TokenizerError } from "./errors/tokenizer-error.js";
export { ToolError } from "./errors/tool-error.js";

export { hashSeed, makeUniform } from "./hash-seed.js";
export { encodePng } from "./images/encode-png.js";
export type { ImageEncoder, ImageStats, Picture, PlacedImage, ProjectorInfo } from "./images/image-encoder.js";
export type { ImagePiece, Lifetimes } from "./images/image-ids.js";
export type { ImageMimeType, ImageRecord, ImageSource, LoadedImage } from "./images/image-source.js";
export { type ImageLimits, type LoadImageOptions, loadImage } from "./images/load-image.js";
export { cropPicture, type PixelBox, scalePicture } from "./images/transform-picture.js";
export type {
  ChatMessage,
  ContentPart,
  ImagePart,
  JsonSchema,
  Role,
  TextPart,
  ToolCall,
  ToolSchema,
} from "./messages.js";
export type {
  CandidateTokens,
  GenerateOptions,
  GenerateResult,
  GenerateStats,
  GradientShard,
  LikeliestOptions,
  LikeliestTokens,
  LossCandidates,
  LossFunction,
  LossInputs,
  LossOutputs,
  LossTotals,
  MicroBatchShard,
  ModelInfo,
  OptimizerOptions,
  PolicyEngine,
  PolicySequence,
  PolicyVersion,
  SampledTokens,
  SamplingOptions,
  ScoreOptions,
  ScoreResult,
  ScoreSequence,
  ScoreShard,
  ShardGradient,
  ShardImage,
  ShardScores,
  SpecialToken,
  TokenCandidate,
  TrainCandidates,
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
  StepReward,
  Timeline,
  Trajectory,
  TrajectoryBranch,
  TrajectoryImage,
  TrajectoryRewards,
  TrajectorySampling,
  TrajectorySegment,
  TurnCall,
  TurnRecord,
} from "./trajectory.js";
export { hasFailed } from "./trajectory.js";
export type { SampledTurn } from "./trajectory-turns.js";
export type { ValueEngine, ValueLossFunction, ValueLossInputs, ValueLossOutputs } from "./value-engine.js";
export { writeFileAtomically } from "./write-file-atomically.js";
