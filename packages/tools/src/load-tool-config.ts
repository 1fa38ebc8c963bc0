import { dirname, resolve } from "node:path";
import type { BaseTool } from "./base-tool.js";
import type { toolClasses } from "./builtin-tools.js";
import { toolEntrySchema } from "./config-entries.js";
import { readConfigList } from "./read-config-list.js";
import { createTools } from "./registry.js";

/** Implements `loadToolConfig` of when-called.ts. */
export async function loadToolConfig(file: string, classes?: typeof toolClasses): Promise<Map<string, BaseTool>> {
  return createTools(await readConfigList(file, "tools", toolEntrySchema), dirname(resolve(file)), classes);
}
