import { ConfigError, ToolError, type ToolSchema } from "@cria/core";
import { fromAiSdkTool, isAiSdkTool } from "./ai-sdk-tool.js";
import type { BaseTool } from "./base-tool.js";
import { builtinTools } from "./builtin-tools.js";
import { importExport } from "./interactions/import-export.js";
import { checkToolSchema } from "./validate-arguments.js";

export type ToolClass = new (config?: Record<string, unknown>, schema?: ToolSchema) => BaseTool;

/** Makes the tools of one config entry where they are not one class: those of a server, for example. */
export type ToolFactory = (
  entry: ToolConfigEntry,
  baseFolder: string,
) => BaseTool | readonly BaseTool[] | Promise<BaseTool | readonly BaseTool[]>;

/** One entry of a tool config file. */
export interface ToolConfigEntry {
  class_name: string;
  config?: Record<string, unknown>;
  tool_schema?: ToolSchema;
  /** Only of entries that name an MCP server, in the field's form. */
  mcp?: { mcp_servers_config_path: string; tool_selected_list?: string[] };
}

const registered = new Map<string, ToolClass | ToolFactory>();

/** Makes a class or factory available as `class_name`; it goes before built-ins and modules of that name. */
export function registerToolClass(className: string, tool: ToolClass | ToolFactory): void {
  registered.set(className, tool);
}

/**
 * Makes the tools of a config. `class_name` is a built-in name or `module#Export`; relative modules start at `baseFolder`.
 * The export is a tool class, a factory, a tool that is already made, or an AI SDK tool, which is called by the name in
 * its `tool_schema`, else by its export's.
 * @throws ToolError when a class cannot be found or is not a tool.
 */
export async function createTools(
  entries: readonly ToolConfigEntry[],
  baseFolder: string,
): Promise<Map<string, BaseTool>> {
  const tools = new Map<string, BaseTool>();
  for (const entry of entries) {
    for (const tool of await createEntry(entry, baseFolder)) {
      checkToolSchema(tool.schema);
      if (tools.has(tool.name)) {
        throw new ToolError("is defined twice", {
          code: "tool/duplicate",
          subject: `tool "${tool.name}"`,
          remedy: "give each tool its own name",
        });
      }
      tools.set(tool.name, tool);
    }
  }
  return tools;
}

/** Frees what tools and interactions hold beyond trajectories: processes, servers. One that fails to is passed over. */
export async function disposeTools(tools: Iterable<{ dispose?(): Promise<void> }>): Promise<void> {
  await Promise.allSettled([...tools].map(async (tool) => tool.dispose?.()));
}

async function createEntry(entry: ToolConfigEntry, baseFolder: string): Promise<readonly BaseTool[]> {
  const target =
    registered.get(entry.class_name) ?? builtinTools.get(entry.class_name) ?? (await load(entry, baseFolder));
  if (isAiSdkTool(target)) {
    const name = entry.tool_schema?.function.name ?? entry.class_name.slice(entry.class_name.lastIndexOf("#") + 1);
    return [await fromAiSdkTool(name, target)];
  }
  if (isTool(target)) return [target];
  if (isToolClass(target)) return [new target(entry.config ?? {}, entry.tool_schema)];
  const made = typeof target === "function" ? await (target as ToolFactory)(entry, baseFolder) : target;
  const tools = Array.isArray(made) ? made : [made];
  if (tools.every(isTool)) return tools;
  throw new ToolError("is not a tool", {
    code: "tool/not-a-tool",
    subject: `class_name "${entry.class_name}"`,
    expected: "a subclass of BaseTool, a function that makes one, or an AI SDK tool",
    received: typeof target === "function" ? "a function that returns something else" : typeof target,
  });
}

async function load({ class_name }: ToolConfigEntry, baseFolder: string): Promise<unknown> {
  try {
    return await importExport(class_name, baseFolder, "class_name");
  } catch (cause) {
    const isPython = /^[\w]+(\.\w+)+$/.test(class_name);
    throw new ToolError("cannot be loaded", {
      code: "tool/not-found",
      subject: `class_name "${class_name}"`,
      expected: `"./my-tool.ts#Export", "package#Export", or one of ${[...builtinTools.keys()].join(", ")}`,
      received: isPython
        ? "the path of a Python class that has no counterpart here"
        : cause instanceof ConfigError
          ? cause.received
          : (cause as Error).message,
      remedy: isPython ? "write the tool as a subclass of BaseTool and name its file" : undefined,
      cause,
    });
  }
}

/** By shape, not by instanceof: the module may have imported another copy of this package. */
function isTool(value: unknown): value is BaseTool {
  const tool = value as BaseTool | null;
  return typeof tool === "object" && typeof tool?.execute === "function" && tool.schema?.type === "function";
}

function isToolClass(value: unknown): value is ToolClass {
  return typeof value === "function" && typeof value.prototype?.execute === "function";
}
