export type { AiSdkTool } from "./ai-sdk-tool.js";
export {
  BaseTool,
  type CreateOptions,
  type ExecuteOptions,
  type ToolImages,
  type ToolOrigin,
  type ToolResponse,
  type ToolResult,
} from "./base-tool.js";
export { toolClasses } from "./builtin-tools.js";
export { calculate, formatNumber } from "./calculate.js";
export { CalculatorTool } from "./calculator-tool.js";
export { CodeTool } from "./code-tool.js";
export { type A2aExtension, type A2aSkill, type A2aSkillSet, fromA2aSkills, toA2aSkills } from "./converters/a2a.js";
export { fromMcpTool, type McpToolDescription, toMcpTool } from "./converters/mcp.js";
export type { BuiltInToolFormat, ToolFormatName } from "./formats/format-names.js";
export {
  type GivenToolFormat,
  getToolFormat,
  registerToolFormat,
  registerToolParser,
  toolFormats,
} from "./formats/registry.js";
export { defineToolFormat, type ToolFormat, type ToolFormatParts } from "./formats/tool-format.js";
export { jsonSchemaToGrammar } from "./grammar/json-schema-grammar.js";
export { type ToolCallGrammarOptions, toolCallGrammar } from "./grammar/tool-call-grammar.js";
export { argumentsOf, type GrammarTurn, type TurnGrammar, writeCalls } from "./grammar/turn-grammar.js";
export { Gsm8kTool } from "./gsm8k-tool.js";
export { ImageZoomTool } from "./image-zoom-tool.js";
export type { ToolArguments, ToolInput, ToolInputSchema } from "./input-schema.js";
export {
  BaseInteraction,
  type ChatModel,
  type ChatOptions,
  CodeExecutionInteraction,
  findLastAnswer,
  Gsm8kInteraction,
  type InteractionClass,
  type InteractionConversation,
  type InteractionDefinition,
  type InteractionOutput,
  type InteractionReply,
  type InteractionTurn,
  interaction,
  interactionClasses,
  type ReplyKwargs,
  SimulatedUserInteraction,
  type StartKwargs,
} from "./interactions/index.js";
export type { McpToolOptions } from "./mcp/create-mcp-tools.js";
export type { McpConnectionOptions } from "./mcp/mcp-connection.js";
export { type McpServerOptions, mcpServer } from "./mcp/mcp-server.js";
export type { McpServerConfig } from "./mcp/mcp-server-config.js";
export { disposeTools, type OpenedTools, openTools, type ToolListItem, type ToolSource } from "./open-tools.js";
export { type CallStart, type CallStartFinder, findMarks } from "./parsers/call-start.js";
export type { ParsedToolCall, ParsedTurn, ToolParser } from "./parsers/tool-parser.js";
export { createTools } from "./registry.js";
export { defineToolSchema } from "./schema.js";
export type { Passage, Retriever } from "./search/passage.js";
export { SearchTool } from "./search/search-tool.js";
export type { TurnReader } from "./splitters/turn-reader.js";
export type { OnSpoken, SpokenKind, TurnSplitter } from "./splitters/turn-splitter.js";
export {
  type Tool,
  type ToolAnswer,
  type ToolCallOptions,
  type ToolContext,
  type ToolConversation,
  type ToolDefinition,
  type ToolOutput,
  type ToolStart,
  tool,
} from "./tool.js";
export type { ToolClass, ToolConfigEntry, ToolFactory } from "./tool-config-entry.js";
export { findArgumentError } from "./validate-arguments.js";
export { loadToolConfig } from "./when-called.js";
