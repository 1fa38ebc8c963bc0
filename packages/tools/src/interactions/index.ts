export { findLastAnswer } from "@cria/core";
export { InstanceStore } from "../instance-store.js";
export {
  BaseInteraction,
  type InteractionReply,
  type ReplyKwargs,
  type StartKwargs,
} from "./base-interaction.js";
export {
  type ChatModel,
  type ChatOptions,
  EndpointChatModel,
  type EndpointOptions,
  EngineChatModel,
} from "./chat-model.js";
export { CodeExecutionInteraction, type CodeExecutor } from "./code-execution-interaction.js";
export { Gsm8kInteraction } from "./gsm8k-interaction.js";
export {
  type InteractionConversation,
  type InteractionDefinition,
  type InteractionOutput,
  type InteractionTurn,
  interaction,
} from "./interaction.js";
export {
  createInteractions,
  type InteractionClass,
  type InteractionConfigEntry,
  interactionClasses,
  registerInteractionClass,
} from "./registry.js";
export { SimulatedUserInteraction } from "./simulated-user-interaction.js";
