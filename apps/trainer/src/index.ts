// All that a user of Cria imports: tools and tasks, one call that trains, the parts of an own loop, configs.

import { languageModel } from "@cria/ai-sdk";
import { registerAgentEndpoint, registerAgentModel } from "@cria/rollout";
import { openAgentEndpoint } from "@cria/serve";

export { type CriaCallOptions, type CriaMetadata, type CriaProvider, languageModel } from "@cria/ai-sdk";
export type { AdvantageEstimator, AdvantageInputs, PolicyLoss, PolicyLossOptions } from "@cria/algorithms";
export { losses } from "@cria/algorithms";
export type { ChatMessage, JsonSchema, ToolSchema } from "@cria/core";
export { type DatasetRow, loadDataset, type RewardFunction, type RewardInfo, type RewardResult } from "@cria/rollout";
export { createFetch } from "@cria/serve";
export {
  BaseInteraction,
  BaseTool,
  type CreateOptions,
  defineToolSchema,
  type ExecuteOptions,
  findLastAnswer,
  type InteractionConversation,
  type InteractionDefinition,
  type InteractionReply,
  type InteractionTurn,
  interaction,
  mcpServer,
  openTools,
  type StartKwargs,
  type ToolAnswer,
  type ToolContext,
  type ToolConversation,
  type ToolDefinition,
  type ToolListItem,
  type ToolResponse,
  type ToolResult,
  type ToolStart,
  tool,
} from "@cria/tools";
// By name: a bundle that the command line shares would lose `export *`.
export type {
  AdvantageOptions,
  Advantages,
  Batch,
  BatchesOptions,
  BatchScores,
  Checkpoint,
  Environment,
  Episode,
  FilteredEvent,
  GenerateTextOptions,
  LoadedConfig,
  LoadPolicyOptions,
  MakeBatchOptions,
  NoticeEvent,
  OpenedRun,
  PartialConfig,
  PolicyScoreOptions,
  Problem,
  ProblemEvent,
  ProgressEvent,
  Report,
  RollOutOptions,
  RunEvent,
  RunStatus,
  Session,
  SftConfig,
  SftResult,
  StepEvent,
  StepMetrics,
  StepResult,
  TaskDefinition,
  TaskReward,
  TokenScores,
  TrackedRun,
  TrackedStep,
  Tracker,
  TrainConfig,
  TrainingState,
  TrainOptions,
  TrainResult,
  TrainSessionOptions,
  TrainStep,
  TrainSummary,
  UpdateOptions,
  ValidatedEvent,
  Validation,
  ValidationOptions,
  WarningEvent,
  WorkName,
} from "@cria/trainer";
export {
  advantages,
  CheckpointStore,
  countSteps,
  defineTask,
  findCheckpoint,
  fromConfig,
  Generation,
  Groups,
  loadConfig,
  loadPolicy,
  makeBatch,
  openRun,
  openSession,
  Policy,
  RunFolder,
  RunningRollouts,
  rollOut,
  runSft,
  runTrainingStep,
  sftConfigSchema,
  Task,
  TrainingInterrupted,
  TrainRun,
  toConfig,
  train,
  trainConfigSchema,
  trainSession,
  validate,
} from "@cria/trainer";
export { embeddedPolicy } from "./assets/embedded-policy.js";
export { type DemoOptions, type DemoSummary, runDemo } from "./demo/run-demo.js";
export { type CreateCriaOptions, type Cria, createCria } from "./production/create-cria.js";

// Agents are given the policy as a model of the AI SDK; programs, as an endpoint.
registerAgentModel(languageModel);
registerAgentEndpoint(openAgentEndpoint());
