import { type ConfigError, ToolError } from "@cria/core";
import { findNearest } from "@cria/core/internal";
import { findAiSdkTools, fromAiSdkTool, fromAiSdkTools, isAiSdkTool } from "./ai-sdk-tool.js";
import { type BaseTool, isTool } from "./base-tool.js";
import { toolClasses } from "./builtin-tools.js";
import { disposeTools, isToolSource } from "./open-tools.js";
import { overrideSchema } from "./override-schema.js";
import { ToolCollection } from "./tool-collection.js";
import type { ToolClass, ToolConfigEntry, ToolFactory } from "./tool-config-entry.js";
import { importExport } from "./user-code/import-export.js";

/**
 * Makes the tools of a config; each takes the `tool_schema` of its entry. `class_name` is a name in `classes` or
 * `module#Export`; relative modules start at `baseFolder`. The export is a tool class, a factory, a finished tool
 * (`tool()`), an MCP server (`mcpServer()`), an AI SDK tool, a record of AI SDK tools, or an agent with `tools`. A
 * single AI SDK tool has the name of its `tool_schema`, else that of its export; `config.tools` selects tools of a
 * record or an agent.
 * @throws ToolError when a class cannot be found or is not a tool.
 */
export async function createTools(
  entries: readonly ToolConfigEntry[],
  baseFolder: string,
  classes = toolClasses,
): Promise<Map<string, BaseTool>> {
  const collection = new ToolCollection();
  const made: BaseTool[] = [];
  try {
    for (const entry of entries) {
      const ofEntry = await createEntry(entry, baseFolder, classes);
      made.push(...ofEntry);
      overrideSchema(ofEntry, entry.tool_schema);
      for (const tool of ofEntry) collection.add(tool, `class_name ${entry.class_name}`);
    }
    return collection.tools;
  } catch (error) {
    // Servers that were started for them would keep the process alive.
    await disposeTools(made);
    throw error;
  }
}

async function createEntry(
  entry: ToolConfigEntry,
  baseFolder: string,
  classes: typeof toolClasses,
): Promise<readonly BaseTool[]> {
  const target = classes.find(entry.class_name) ?? (await load(entry, baseFolder, classes.names()));
  if (isAiSdkTool(target)) {
    const name = entry.tool_schema?.function.name ?? entry.class_name.slice(entry.class_name.lastIndexOf("#") + 1);
    return [await fromAiSdkTool(name, target)];
  }
  if (isTool(target)) {
    checkNoConfig(entry);
    return [target];
  }
  if (isToolSource(target)) return target.open();
  if (isToolClass(target)) return [new target(entry.config ?? {}, entry.tool_schema)];
  const aiSdkTools = findAiSdkTools("", target);
  if (aiSdkTools) return [...(await fromAiSdkTools(selectTools(aiSdkTools, entry))).values()];
  const made = typeof target === "function" ? await (target as ToolFactory)(entry, baseFolder) : target;
  const tools = Array.isArray(made) ? made : [made];
  if (tools.every(isTool)) return tools;
  throw new ToolError("is not a tool", {
    code: "tool/not-a-tool",
    subject: `class_name "${entry.class_name}"`,
    expected: "tool(...), a subclass of BaseTool, a function that makes one, mcpServer(...), or an AI SDK tool",
    received: typeof target === "function" ? "a function that returns something else" : typeof target,
  });
}

/** A finished tool cannot use a config. */
function checkNoConfig({ class_name, config }: ToolConfigEntry): void {
  if (config === undefined || Object.keys(config).length === 0) return;
  throw new ToolError("takes no config", {
    code: "tool/bad-config",
    subject: `class_name "${class_name}"`,
    expected: "no config: the export is a finished tool",
    received: `config: ${JSON.stringify(config)}`,
    remedy: "export a function (entry) => tool({...}) that reads entry.config",
  });
}

/** The tools that `config.tools` names; all of them without it. */
function selectTools<T>(tools: Record<string, T>, { class_name, config }: ToolConfigEntry): Record<string, T> {
  const wanted = config?.["tools"] as string[] | undefined;
  if (wanted === undefined) return tools;
  const missing = wanted.filter((name) => !Object.hasOwn(tools, name));
  if (missing.length === 0) return Object.fromEntries(wanted.map((name) => [name, tools[name]!]));
  throw new ToolError("do not exist", {
    code: "tool/not-found",
    subject: `tools ${missing.join(", ")} of class_name "${class_name}"`,
    expected: Object.keys(tools).join(", "),
  });
}

/** @param known names of classes, for errors. */
async function load({ class_name }: ToolConfigEntry, baseFolder: string, known: readonly string[]): Promise<unknown> {
  try {
    return await importExport(class_name, baseFolder, "class_name");
  } catch (cause) {
    const { received, expected, remedy } = cause as ConfigError;
    const details = { code: "tool/not-found", subject: `class_name "${class_name}"`, cause };
    if (class_name.includes("#")) throw new ToolError("cannot be loaded", { ...details, expected, received, remedy });
    const ours = known.filter((name) => name.startsWith("@cria/"));
    const nearest = findNearest(class_name, known) ?? findByExport(class_name, ours);
    const isPython = /^\w+(\.\w+)+$/.test(class_name);
    throw new ToolError("cannot be loaded", {
      ...details,
      expected: nearest
        ? `perhaps "${nearest}"`
        : `"./my-tool.ts#Export", "package#Export", or one of ${ours.join(", ")}`,
      received: isPython ? "the path of a Python class that has no counterpart here" : received,
      remedy: isPython ? "write it with tool({...}) and name its file" : undefined,
    });
  }
}

/** The class of this name, written without its package. */
function findByExport(name: string, known: readonly string[]): string | undefined {
  const exported = findNearest(
    name,
    known.map((entry) => entry.slice(entry.indexOf("#") + 1)),
  );
  return known.find((entry) => entry.endsWith(`#${exported}`));
}

function isToolClass(value: unknown): value is ToolClass {
  return typeof value === "function" && typeof value.prototype?.execute === "function";
}
