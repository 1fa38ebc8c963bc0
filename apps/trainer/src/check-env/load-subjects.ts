import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, extname } from "node:path";
import { ConfigError, readOrThrow } from "@cria/core";
import { type BaseInteraction, type BaseTool, createTools, loadToolConfig } from "@cria/tools";
import {
  createInteractions,
  findAiSdkTools,
  fromAiSdkTools,
  importModule,
  interactionEntrySchema,
  isToolSource,
  parseYaml,
  readConfigList,
} from "@cria/tools/internal";
import { checkArgument, providePackages } from "@cria/trainer/internal";
import { parseServer } from "../init/from-mcp.js";

/** Tools and interactions to check. */
export interface EnvSubjects {
  tools: BaseTool[];
  interactions: BaseInteraction[];
}

const mcpTools = "@cria/tools#McpTools";

/**
 * Loads the tools and interactions that a path names: a YAML file with `tools` or `interaction`; a module's export
 * (`my-tool.ts#myTool`), or all that a module exports: tools, interactions, tools of the AI SDK, records of them,
 * agents with tools; an MCP server by its URL or its command line, or a JSON file of `mcpServers`.
 * @throws ConfigError or ToolError when it cannot be loaded or has nothing to check.
 */
export async function loadSubjects(path: string, config: Record<string, unknown>): Promise<EnvSubjects> {
  providePackages();
  if ([".yaml", ".yml"].includes(extname(path))) return loadConfigFile(checkArgument(path, path));
  if (extname(path) === ".json") return loadServers({ mcpServers: await readServers(checkArgument(path, path)) });
  if (/^https?:\/\//.test(path) || (/\s/.test(path.trim()) && !existsSync(path)))
    return loadServers({ mcpServers: { [path]: parseServer(path, "check-env") } });
  const [module, name] = path.split("#") as [string, string | undefined];
  const isPackage = !module.startsWith(".") && extname(module) === "";
  const target = isPackage ? module : checkArgument(path, module);
  const exports = await readOrThrow(() => importModule(target, process.cwd()), ConfigError, {
    summary: "cannot be loaded",
    subject: path,
    expected: "a module (my-tool.ts#myTool) or a YAML file of tools or interactions",
  });
  const found: EnvSubjects = { tools: [], interactions: [] };
  for (const [key, value] of Object.entries(exports)) {
    if (name !== undefined && key !== name) continue;
    // Tested before other objects with `execute`, which AI SDK tools have too.
    const aiSdkTools = findAiSdkTools(key, value);
    if (aiSdkTools) {
      const known = found.tools.map((tool) => tool.name);
      // Modules often export a tool, and also the agent that has it.
      for (const tool of (await fromAiSdkTools(aiSdkTools)).values())
        if (!known.includes(tool.name)) found.tools.push(tool);
      continue;
    }
    if (name !== undefined && typeof value === "function" && !isEnvironmentClass(value)) {
      const class_name = `${target}#${name}`;
      found.tools.push(...(await createTools([{ class_name, config }], process.cwd())).values());
      continue;
    }
    if (isToolSource(value)) {
      found.tools.push(...(await value.open()));
      continue;
    }
    const made = make(value, config);
    if (hasMethod(made, "execute")) found.tools.push(made as BaseTool);
    else if (hasMethod(made, "generateResponse")) found.interactions.push(made as BaseInteraction);
  }
  if (found.tools.length + found.interactions.length > 0) return found;
  throw new ConfigError("has no tool and no interaction", {
    code: "config/nothing-to-check",
    subject: path,
    expected: "tool(...), interaction(...), a class that extends BaseTool or BaseInteraction, or tools of the AI SDK",
    received: Object.keys(exports).join(", ") || "no exports",
  });
}

/** An instance, where the export is one of our classes or already an instance. */
function make(value: unknown, config: Record<string, unknown>): unknown {
  if (typeof value !== "function") return value;
  if (!isEnvironmentClass(value)) return undefined;
  return new (value as new (config: Record<string, unknown>) => unknown)(config);
}

function isEnvironmentClass({ prototype }: { prototype?: unknown }): boolean {
  return hasMethod(prototype, "execute") || hasMethod(prototype, "generateResponse");
}

async function loadServers(config: Record<string, unknown>): Promise<EnvSubjects> {
  const tools = await createTools([{ class_name: mcpTools, config }], process.cwd());
  return { tools: [...tools.values()], interactions: [] };
}

/** The `mcpServers` of a file that MCP hosts share. */
async function readServers(file: string): Promise<object> {
  let received = "no mcpServers in it";
  try {
    const { mcpServers } = JSON.parse(await readFile(file, "utf8"));
    if (typeof mcpServers === "object" && mcpServers !== null) return mcpServers;
  } catch (cause) {
    received = (cause as Error).message;
  }
  throw new ConfigError("names no MCP servers", {
    code: "config/nothing-to-check",
    subject: basename(file),
    expected: '{ "mcpServers": { "<name>": { "command", "args" } } }',
    received,
  });
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof (value as Record<string, unknown> | undefined | null)?.[name] === "function";
}

async function loadConfigFile(file: string): Promise<EnvSubjects> {
  // A file that cannot be read is refused by its reader, below.
  const content = await readFile(file, "utf8")
    .then(parseYaml)
    .catch(() => undefined);
  if ((content as Record<string, unknown> | null | undefined)?.interaction !== undefined) {
    const entries = await readConfigList(file, "interaction", interactionEntrySchema);
    return { tools: [], interactions: [...(await createInteractions(entries, dirname(file))).values()] };
  }
  return { tools: [...(await loadToolConfig(file)).values()], interactions: [] };
}
