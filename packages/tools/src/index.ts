export { type AiSdkTool, findAiSdkTools, fromAiSdkTool, fromAiSdkTools, isAiSdkTool } from "./ai-sdk-tool.js";
export {
  BaseTool,
  type CreateOptions,
  type ExecuteOptions,
  isTool,
  type ToolImages,
  type ToolOrigin,
  type ToolResponse,
  type ToolResult,
} from "./base-tool.js";
export { registerToolClass, toolClasses } from "./builtin-tools.js";
export { calculate, formatNumber } from "./calculate.js";
export { CalculatorTool } from "./calculator-tool.js";
export { checkToolSchema, findSchemaProblem } from "./check-tool-schema.js";
export { CodeTool, describeOutcome } from "./code-tool.js";
export { interactionEntrySchema, toolEntrySchema } from "./config-entries.js";
export {
  type A2aExtension,
  type A2aSkill,
  type A2aSkillSet,
  fromA2aSkill,
  fromA2aSkills,
  TOOL_PARAMETERS_EXTENSION,
  toA2aSkill,
  toA2aSkills,
} from "./converters/a2a.js";
export { fromMcpTool, type McpToolDescription, toMcpTool } from "./converters/mcp.js";
export {
  type BuiltInToolFormat,
  isToolFormatName,
  listToolFormatNames,
  type ToolFormatName,
} from "./formats/format-names.js";
export {
  type GivenToolFormat,
  getToolFormat,
  listToolFormats,
  loadToolFormat,
  registerToolFormat,
  registerToolParser,
  resolveToolFormat,
  toolFormats,
} from "./formats/registry.js";
export { defineToolFormat, type ToolFormat, type ToolFormatParts } from "./formats/tool-format.js";
export { jsonSchemaToGrammar } from "./grammar/json-schema-grammar.js";
export { type ToolCallGrammarOptions, toolCallGrammar } from "./grammar/tool-call-grammar.js";
export { argumentsOf, type GrammarTurn, type TurnGrammar, writeCalls } from "./grammar/turn-grammar.js";
export { Gsm8kTool } from "./gsm8k-tool.js";
export { ImageZoomTool } from "./image-zoom-tool.js";
export type { ToolArguments, ToolInput, ToolInputSchema } from "./input-schema.js";
export * from "./interactions/index.js";
export { loadToolConfig } from "./load-tool-config.js";
export { connectMcpServer, createMcpTools, type McpToolOptions } from "./mcp/create-mcp-tools.js";
export { McpConnection, type McpConnectionOptions } from "./mcp/mcp-connection.js";
export { type McpServerOptions, mcpServer } from "./mcp/mcp-server.js";
export type { McpServerConfig } from "./mcp/mcp-server-config.js";
export { McpTool } from "./mcp/mcp-tool.js";
export {
  disposeTools,
  isToolSource,
  type OpenedTools,
  openTools,
  type ToolListItem,
  type ToolSource,
} from "./open-tools.js";
export { parseYaml, parseYamlDocument, type YamlDocument } from "./parse-yaml.js";
export { type CallStart, type CallStartFinder, findMarks } from "./parsers/call-start.js";
export { thinkingTags } from "./parsers/thinking.js";
export type { ParsedToolCall, ParsedTurn, ToolParser } from "./parsers/tool-parser.js";
export { readConfigList } from "./read-config-list.js";
export { createTools } from "./registry.js";
export { JavaScriptSandbox } from "./sandbox/javascript-sandbox.js";
export { PythonSandbox, type PythonSandboxOptions } from "./sandbox/python-sandbox.js";
export type {
  RunOptions,
  Sandbox,
  SandboxLimits,
  SandboxOptions,
  SandboxOutcome,
  SandboxStatus,
} from "./sandbox/sandbox.js";
export { SandboxExecutor } from "./sandbox/sandbox-executor.js";
export { defineToolSchema, toJsonSchema } from "./schema.js";
export { HttpRetriever, type HttpRetrieverOptions } from "./search/http-retriever.js";
export { LocalRetriever, type LocalRetrieverOptions } from "./search/local-retriever.js";
export { formatPassages, type Passage, type Retriever } from "./search/passage.js";
export { createSearchTool, SearchTool } from "./search/search-tool.js";
export { noCalls, type TurnReader } from "./splitters/turn-reader.js";
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
export { provideHostModules } from "./user-code/host-modules.js";
export { importExport, importModule } from "./user-code/import-export.js";
export { findArgumentError } from "./validate-arguments.js";
