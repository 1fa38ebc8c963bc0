// Functions of the interface that load their module when they are first called, so that a program which imports Cria starts at once.

import type { BaseTool } from "./base-tool.js";
import type { toolClasses } from "./builtin-tools.js";

/**
 * Makes the tools of a config file, YAML or JSON: `tools: [{ class_name, config?, tool_schema? }]`. Relative names
 * in it start at its folder.
 * @param classes names for `class_name` besides modules; default: built-in and registered ones.
 * @throws ConfigError when the file cannot be read or does not list tools; ToolError when a tool cannot be made.
 */
export async function loadToolConfig(file: string, classes?: typeof toolClasses): Promise<Map<string, BaseTool>> {
  return (await import("./load-tool-config.js")).loadToolConfig(file, classes);
}
