// For the other packages of Cria: names of the package that are no part of its interface, and change without notice. `index.ts` has what
// users' programs need.

export { findAiSdkTools, fromAiSdkTool, fromAiSdkTools, isAiSdkTool } from "./ai-sdk-tool.js";
export { isTool } from "./base-tool.js";
export { registerToolClass } from "./builtin-tools.js";
export { checkToolSchema, findSchemaProblem } from "./check-tool-schema.js";
export { describeOutcome } from "./code-tool.js";
export { interactionEntrySchema, toolEntrySchema } from "./config-entries.js";
export { fromA2aSkill, TOOL_PARAMETERS_EXTENSION, toA2aSkill } from "./converters/a2a.js";
export { isToolFormatName, listToolFormatNames } from "./formats/format-names.js";
export { findToolFormat, listToolFormats, loadToolFormat, resolveToolFormat } from "./formats/registry.js";
export * from "./index.js";
export {
  type CodeExecutor,
  createInteractions,
  EndpointChatModel,
  type EndpointOptions,
  EngineChatModel,
  InstanceStore,
  type InteractionConfigEntry,
  registerInteractionClass,
} from "./interactions/index.js";
export { connectMcpServer, createMcpTools } from "./mcp/create-mcp-tools.js";
export { McpConnection } from "./mcp/mcp-connection.js";
export { McpTool } from "./mcp/mcp-tool.js";
export { isToolSource } from "./open-tools.js";
export { parseYaml, parseYamlDocument, type YamlDocument } from "./parse-yaml.js";
export { findOpenThinking, thinkingTags } from "./parsers/thinking.js";
export { readConfigList } from "./read-config-list.js";
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
export { toJsonSchema } from "./schema.js";
export { HttpRetriever, type HttpRetrieverOptions } from "./search/http-retriever.js";
export { LocalRetriever, type LocalRetrieverOptions } from "./search/local-retriever.js";
export { formatPassages } from "./search/passage.js";
export { createSearchTool } from "./search/search-tool.js";
export { noCalls } from "./splitters/turn-reader.js";
export { provideHostModules } from "./user-code/host-modules.js";
export { importExport, importModule } from "./user-code/import-export.js";
