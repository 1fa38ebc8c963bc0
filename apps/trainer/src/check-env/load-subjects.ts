import { readFile } from "node:fs/promises";
import { dirname, extname, resolve } from "node:path";
import { ConfigError } from "@cria/core";
import {
  type BaseInteraction,
  type BaseTool,
  createInteractions,
  type InteractionConfigEntry,
  importModule,
  loadToolConfig,
  readConfigList,
} from "@cria/tools";
import { parse as parseYaml } from "yaml";

/** Tools and interactions to look at. */
export interface EnvSubjects {
  tools: BaseTool[];
  interactions: BaseInteraction[];
}

/**
 * What a path names: a YAML file with `tools` or `interaction`, a module's export (`my-tool.ts#MyTool`), or all tools
 * and interactions that a module exports.
 * @throws ConfigError or ToolError when it cannot be loaded or has nothing to check.
 */
export async function loadSubjects(path: string, config: Record<string, unknown>): Promise<EnvSubjects> {
  if ([".yaml", ".yml"].includes(extname(path))) return loadConfigFile(resolve(path));
  const [module, name] = path.split("#") as [string, string | undefined];
  const isPackage = !module.startsWith(".") && extname(module) === "";
  let exports: Record<string, unknown>;
  try {
    const hostModules = { "@cria/rollout": await import("@cria/rollout") };
    exports = await importModule(isPackage ? module : resolve(module), process.cwd(), hostModules);
  } catch (cause) {
    throw new ConfigError("cannot be loaded", {
      code: "config/unreadable",
      subject: path,
      expected: "a module (my-tool.ts#MyTool) or a YAML file of tools or interactions",
      received: (cause as Error).message,
      cause,
    });
  }
  const found: EnvSubjects = { tools: [], interactions: [] };
  for (const [key, value] of Object.entries(exports)) {
    if (name !== undefined && key !== name) continue;
    const made = make(value, config);
    if (hasMethod(made, "execute")) found.tools.push(made as BaseTool);
    else if (hasMethod(made, "generateResponse")) found.interactions.push(made as BaseInteraction);
  }
  if (found.tools.length + found.interactions.length > 0) return found;
  throw new ConfigError("has no tool and no interaction", {
    code: "config/nothing-to-check",
    subject: path,
    expected: "a class that extends BaseTool or BaseInteraction",
    received: Object.keys(exports).join(", ") || "no exports",
  });
}

/** An instance, where the export is a class of ours or an instance already. */
function make(value: unknown, config: Record<string, unknown>): unknown {
  if (typeof value !== "function") return value;
  const { prototype } = value;
  if (!hasMethod(prototype, "execute") && !hasMethod(prototype, "generateResponse")) return undefined;
  return new (value as new (config: Record<string, unknown>) => unknown)(config);
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof (value as Record<string, unknown> | undefined | null)?.[name] === "function";
}

async function loadConfigFile(file: string): Promise<EnvSubjects> {
  const content = await readFile(file, "utf8").then(parseYaml, () => undefined);
  if (content?.interaction !== undefined) {
    const entries = await readConfigList<InteractionConfigEntry>(file, "interaction");
    return { tools: [], interactions: [...(await createInteractions(entries, dirname(file))).values()] };
  }
  return { tools: [...(await loadToolConfig(file)).values()], interactions: [] };
}
