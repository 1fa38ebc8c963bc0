import { ToolError, type ToolSchema } from "@cria/core";
import type { BaseTool } from "./base-tool.js";
import { CalculatorTool } from "./calculator-tool.js";
import { Gsm8kTool } from "./gsm8k-tool.js";
import { importModule } from "./interactions/import-export.js";

export type ToolClass = new (config?: Record<string, unknown>, schema?: ToolSchema) => BaseTool;

/** Built-in classes, by the names that configs use: ours, and the Python paths of the field's shipped examples. */
const classes = new Map<string, ToolClass>([
  ["@cria/tools#CalculatorTool", CalculatorTool],
  ["@cria/tools#Gsm8kTool", Gsm8kTool],
  ["verl.tools.gsm8k_tool.Gsm8kTool", Gsm8kTool],
]);

/** One entry of a tool config file. */
export interface ToolConfigEntry {
  class_name: string;
  config?: Record<string, unknown>;
  tool_schema?: ToolSchema;
}

export function registerToolClass(className: string, toolClass: ToolClass): void {
  classes.set(className, toolClass);
}

/**
 * Makes the tools of a config. `class_name` is a built-in name or `module#Export`; relative modules start at `baseFolder`.
 * @throws ToolError when a class cannot be found or is not a tool.
 */
export async function createTools(
  entries: readonly ToolConfigEntry[],
  baseFolder: string,
): Promise<Map<string, BaseTool>> {
  const tools = new Map<string, BaseTool>();
  for (const entry of entries) {
    const toolClass = classes.get(entry.class_name) ?? (await importToolClass(entry.class_name, baseFolder));
    const tool = new toolClass(entry.config ?? {}, entry.tool_schema);
    if (tools.has(tool.name)) {
      throw new ToolError("is defined twice", {
        code: "tool/duplicate",
        subject: `tool "${tool.name}"`,
        remedy: "give each tool its own name",
      });
    }
    tools.set(tool.name, tool);
  }
  return tools;
}

async function importToolClass(className: string, baseFolder: string): Promise<ToolClass> {
  const fail = (received: string, cause?: unknown) =>
    new ToolError("cannot be loaded", {
      code: "tool/not-found",
      subject: `class_name "${className}"`,
      expected: `one of ${[...classes.keys()].join(", ")}, or "./module.js#Export"`,
      received,
      cause,
    });
  const [module, name] = className.split("#");
  if (!module || !name) throw fail("a name without #Export");
  let exports: Record<string, unknown>;
  try {
    exports = await importModule(module, baseFolder);
  } catch (cause) {
    throw fail((cause as Error).message, cause);
  }
  if (typeof exports[name] !== "function") throw fail(`exports ${Object.keys(exports).join(", ") || "nothing"}`);
  return exports[name] as ToolClass;
}
