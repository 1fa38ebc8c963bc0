export { BaseTool, type CreateOptions, type ExecuteOptions, type ToolResponse, type ToolResult } from "./base-tool.js";
export { calculate, formatNumber } from "./calculate.js";
export { CalculatorTool } from "./calculator-tool.js";
export { Gsm8kTool } from "./gsm8k-tool.js";
export * from "./interactions/index.js";
export { createTools, registerToolClass, type ToolClass, type ToolConfigEntry } from "./registry.js";
export { defineToolSchema, findArgumentError } from "./schema.js";
export {
  getToolParser,
  listToolParsers,
  type ParsedToolCall,
  type ParsedTurn,
  parseHermes,
  registerToolParser,
  type ToolParser,
} from "./tool-parser.js";
