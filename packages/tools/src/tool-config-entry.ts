import type { ToolSchema } from "@cria/core";
import type { BaseTool } from "./base-tool.js";

export type ToolClass = new (config?: Record<string, unknown>, schema?: ToolSchema) => BaseTool;

/** Makes the tools of one config entry that are not one class, such as those of a server. */
export type ToolFactory = (
  entry: ToolConfigEntry,
  baseFolder: string,
) => BaseTool | readonly BaseTool[] | Promise<BaseTool | readonly BaseTool[]>;

/** One entry of a tool config file. */
export interface ToolConfigEntry {
  class_name: string;
  config?: Record<string, unknown>;
  tool_schema?: ToolSchema;
  /** Only in entries that name an MCP server in other frameworks' way. */
  mcp?: { mcp_servers_config_path: string; tool_selected_list?: string[] };
}
