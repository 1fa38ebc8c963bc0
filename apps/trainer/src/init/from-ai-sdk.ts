import { dirname } from "node:path";
import { ConfigError, readOrThrow, ToolError } from "@cria/core";
import type { AiSdkTool } from "@cria/tools";
import { findAiSdkTools, fromAiSdkTool, importModule } from "@cria/tools/internal";
import { checkArgument, providePackages } from "@cria/trainer/internal";
import { stringify } from "yaml";
import { showPath } from "./show-path.js";
import { selectNames, type ToolSource } from "./tool-source.js";

interface FoundTool {
  name: string;
  /** The export that contains it: the tool itself, a record of tools, or an agent. */
  export: string;
  isOnlyTool: boolean;
  tool: AiSdkTool;
}

/**
 * Finds the AI SDK tools that a module exports: tools, records of tools, agents with `tools`.
 * @param address `./agent.ts`, or `./agent.ts#export` for one of its exports; from the working directory.
 * @param wanted names of the tools to take; null: all executable ones.
 * @throws ConfigError when the module cannot be loaded, ToolError when it has no tools.
 */
export async function readAiSdkTools(
  address: string,
  taskFolder: string,
  wanted: readonly string[] | null,
): Promise<ToolSource> {
  const [file, only] = address.split("#") as [string, string | undefined];
  const path = checkArgument("--from-ai-sdk", file);
  const exports = await load(path, address);
  const found = listTools(exports, only);
  if (found.length === 0)
    throw new ToolError("exports no tools of the AI SDK", {
      code: "tool/not-found",
      subject: address,
      expected: "a tool({ description, inputSchema, execute }), a record of them, or an agent with tools",
      received: `exports ${Object.keys(exports).join(", ") || "nothing"}`,
      remedy: "export the tools, or name the module that does",
    });
  const idle = found.filter(({ tool }) => typeof tool.execute !== "function").map(({ name }) => name);
  const names = found.map(({ name }) => name);
  const taken = selectNames(names, wanted, address).filter((name) => wanted !== null || !idle.includes(name));
  if (taken.length === 0)
    throw new ToolError("has no tool with an execute function", {
      code: "tool/not-executable",
      subject: address,
      received: `${idle.join(", ")}, which only a client can run`,
      remedy: "give one of them an execute function: a rollout runs its tools' calls in this process",
    });
  const tools = found.filter(({ name }) => taken.includes(name));
  const schemas = await Promise.all(tools.map(async ({ name, tool }) => (await fromAiSdkTool(name, tool)).schema));
  const comments = [
    "# Tools of the AI SDK, as they are. Rollouts call them for real, many at once: name only those that may be called.",
    ...(wanted === null && idle.length > 0 ? [`# Left out, as they have no execute function: ${idle.join(", ")}`] : []),
  ];
  const toolsFile = `${comments.join("\n")}\n${stringify({ tools: listEntries(tools, showPath(taskFolder, path)) })}`;
  return { toolsFile, schemas, origin: `\`${address}\`` };
}

function load(path: string, address: string): Promise<Record<string, unknown>> {
  providePackages();
  return readOrThrow(() => importModule(path, dirname(path)), ConfigError, {
    summary: "cannot be loaded",
    subject: `--from-ai-sdk ${address}`,
    expected: `a module that runs: ${path}`,
    remedy: () => "run it by itself first; its imports must be installed next to it",
  });
}

/**
 * Each tool once: modules often export a tool, and also the agent that has it. The first export that names it counts.
 */
function listTools(exports: Record<string, unknown>, only: string | undefined): FoundTool[] {
  const found = new Map<string, FoundTool>();
  for (const [name, value] of Object.entries(exports)) {
    if (only !== undefined && name !== only) continue;
    const tools = findAiSdkTools(name, value) ?? {};
    for (const [key, tool] of Object.entries(tools)) {
      if (found.has(key) || [...found.values()].some((other) => other.tool === tool)) continue;
      found.set(key, { name: key, export: name, isOnlyTool: tool === value, tool });
    }
  }
  return [...found.values()];
}

function listEntries(tools: readonly FoundTool[], path: string): object[] {
  const entries: object[] = [];
  for (const name of new Set(tools.map((tool) => tool.export))) {
    const group = tools.filter((tool) => tool.export === name);
    const entry = { class_name: `${path}#${name}` };
    entries.push(group[0]!.isOnlyTool ? entry : { ...entry, config: { tools: group.map((tool) => tool.name) } });
  }
  return entries;
}
