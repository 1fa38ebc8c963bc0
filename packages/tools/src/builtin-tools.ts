import { Registry } from "@cria/core";
import { CalculatorTool } from "./calculator-tool.js";
import { CodeTool } from "./code-tool.js";
import { Gsm8kTool } from "./gsm8k-tool.js";
import { ImageZoomTool } from "./image-zoom-tool.js";
import { createMcpTools } from "./mcp/create-mcp-tools.js";
import { createSearchTool } from "./search/search-tool.js";
import type { ToolClass, ToolFactory } from "./tool-config-entry.js";

/**
 * Tool classes by `class_name`. A built-in tool has two names: ours, and the Python path that other frameworks'
 * examples use.
 */
export const toolClasses = new Registry<ToolClass | ToolFactory>("tool class", {
  "@cria/tools#CalculatorTool": CalculatorTool,
  "@cria/tools#Gsm8kTool": Gsm8kTool,
  "verl.tools.gsm8k_tool.Gsm8kTool": Gsm8kTool,
  "@cria/tools#CodeTool": CodeTool,
  "@cria/tools#SearchTool": createSearchTool,
  "verl.tools.search_tool.SearchTool": createSearchTool,
  "verl.tools.sandbox_fusion_tools.SandboxFusionTool": CodeTool,
  "@cria/tools#ImageZoomTool": ImageZoomTool,
  "verl.tools.image_zoom_in_tool.ImageZoomInTool": ImageZoomTool,
  "@cria/tools#McpTools": createMcpTools,
  "verl.tools.mcp_base_tool.MCPBaseTool": createMcpTools,
  "verl.tools.mcp_search_tool.MCPSearchTool": createMcpTools,
});

/** Makes a class or factory available to every run as `class_name`; it goes before modules of that name. */
export function registerToolClass(className: string, tool: ToolClass | ToolFactory): void {
  toolClasses.register(className, tool);
}
