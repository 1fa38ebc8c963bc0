export { userCacheFolder } from "./cache-folder.js";
export {
  type ChecksOf,
  checkOptions,
  isFunction,
  isObject,
  isText,
  optionChecks,
  previewValue,
  refuseOption,
} from "./check-options.js";
export { contentText, findLastAnswer, joinContent, listImages, showContent, toContent } from "./content.js";
export { describeIssue, describeSchema, findSchema, withoutLibraryTexts } from "./describe-schema.js";
export { ClusterError } from "./errors/cluster-error.js";
export { ConfigError } from "./errors/config-error.js";
export { CriaError, type ErrorDetails } from "./errors/cria-error.js";
export { DataError } from "./errors/data-error.js";
export { EngineError } from "./errors/engine-error.js";
export { HubError } from "./errors/hub-error.js";
export { TokenizerError } from "./errors/tokenizer-error.js";
export { ToolError } from "./errors/tool-error.js";
export { findNearest } from "./find-nearest.js";
export { formatValue } from "./format-value.js";
export { guardWrite, suggestWriteRemedy } from "./guard-write.js";
export { type HashOptions, hashFile, hashFiles } from "./hash-file.js";
export { hashSeed, makeUniform, shuffleIndices } from "./hash-seed.js";
export { type ReadImageOptions, toContentPart, toContentParts, toImageSource } from "./images/content-parts.js";
export { encodePng } from "./images/encode-png.js";
export type { ImageEncoder, ImageStats, Picture, PlacedImage, ProjectorInfo } from "./images/image-encoder.js";
export {
  type ImageIdOptions,
  ImageIds,
  type ImagePiece,
  type Lifetimes,
  type VectorRange,
} from "./images/image-ids.js";
export {
  type ImageMimeType,
  type ImageRecord,
  type ImageSource,
  isLoaded,
  type LoadedImage,
} from "./images/image-source.js";
export {
  type ImageLimits,
  type LoadImageOptions,
  loadImage,
  measureImage,
  readOrientation,
  toImageRecord,
} from "./images/load-image.js";
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
  ShardImage,
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
  TrajectoryImage,
  TrajectoryRewards,
  TrajectorySampling,
  TrajectorySegment,
  TurnRecord,
} from "./trajectory.js";
export { hasFailed } from "./trajectory.js";
export { listPaths, type TrajectoryPath } from "./trajectory-paths.js";
export type { ValueEngine, ValueLossFunction, ValueLossInputs, ValueLossOutputs } from "./value-engine.js";
export { writeFileAtomically } from "./write-file-atomically.js";
