// All that a user of Cria imports: tools and tasks, one call that trains, the parts of an own loop, configs.

export type { AdvantageEstimator, AdvantageInputs, PolicyLoss, PolicyLossOptions } from "@cria/algorithms";
export { losses } from "@cria/algorithms";
export type { ChatMessage, JsonSchema, ToolSchema } from "@cria/core";
export { type DatasetRow, loadDataset, type RewardFunction, type RewardInfo, type RewardResult } from "@cria/rollout";
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
export * from "@cria/trainer";
export { embeddedPolicy } from "./assets/embedded-policy.js";
export { type DemoOptions, type DemoSummary, runDemo } from "./demo/run-demo.js";
