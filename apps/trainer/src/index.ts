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
  tool,
} from "@cria/tools";
export { type Checkpoint, CheckpointStore, type TrainingState } from "./checkpoints/checkpoint-store.js";
export { findCheckpoint, type OpenedRun, openRun } from "./checkpoints/open-run.js";
export { type LoadedConfig, loadConfig } from "./config/load-config.js";
export { type SftConfig, sftConfigSchema } from "./config/sft-config.js";
export { type TrainConfig, trainConfigSchema } from "./config/train-config.js";
export { type DemoOptions, type DemoSummary, runDemo } from "./demo/run-demo.js";
export { runSft, type SftResult } from "./sft/run-sft.js";
export type { StepMetrics } from "./train/collect-metrics.js";
export { countSteps } from "./train/count-steps.js";
export { RunFolder } from "./train/run-folder.js";
export { runTraining, type TrainingHooks } from "./train/run-training.js";
export { openSession } from "./train/session.js";
export type { Session } from "./train/session-type.js";
export { runTrainingStep, type StepResult } from "./train/training-step.js";
export { type Validation, validate } from "./train/validate.js";
