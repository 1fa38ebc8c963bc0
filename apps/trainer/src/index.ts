// What tools, interactions and rewards are written with.
export type { ChatMessage, JsonSchema, ToolSchema } from "@cria/core";
export type { RewardFunction, RewardInfo, RewardResult } from "@cria/rollout";
export {
  BaseInteraction,
  BaseTool,
  type CreateOptions,
  defineToolSchema,
  type ExecuteOptions,
  findLastAnswer,
  type InteractionReply,
  type StartKwargs,
  type ToolResponse,
  type ToolResult,
} from "@cria/tools";
export type { Session, StepMetrics } from "@cria/trainer";
export {
  type Checkpoint,
  CheckpointStore,
  countSteps,
  findCheckpoint,
  type LoadedConfig,
  loadConfig,
  type OpenedRun,
  openRun,
  openSession,
  RunFolder,
  runSft,
  runTraining,
  runTrainingStep,
  type SftConfig,
  type SftResult,
  type StepResult,
  sftConfigSchema,
  type TrainConfig,
  type TrainingHooks,
  type TrainingState,
  trainConfigSchema,
  type Validation,
  validate,
} from "@cria/trainer";
export { type DemoOptions, type DemoSummary, runDemo } from "./demo/run-demo.js";
