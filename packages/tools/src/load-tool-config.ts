import { dirname, resolve } from "node:path";
import type { BaseTool } from "./base-tool.js";
import type { toolClasses } from "./builtin-tools.js";
import { toolEntrySchema } from "./config-entries.js";
import { readConfigList } from "./read-config-list.js";
import { createTools } from "./registry.js";

/**
 * Makes the tools of a config file, YAML or JSON: `tools: [{ class_name, config?, tool_schema? }]`. Relative names in
 * it start at its folder.
 * @param classes values of `class_name` other than modules; default: built-in and registered ones.
 * @throws ConfigError when the file cannot be read or does not list tools; ToolError when a tool cannot be made.
 */
export async function loadToolConfig(file: string, classes?: typeof toolClasses): Promise<Map<string, BaseTool>> {
  return createTools(await readConfigList(file, "tools", toolEntrySchema), dirname(resolve(file)), classes);
}
