import { ConfigError, ToolError, type ToolSchema } from "@cria/core";
import { fromMcpTool, type McpServerConfig } from "@cria/tools";
import { McpConnection } from "@cria/tools/internal";
import { ShellReader, showWord } from "@cria/trainer/internal";
import { stringify } from "yaml";
import { showPath } from "./show-path.js";
import { selectNames, type ToolSource } from "./tool-source.js";

interface ListedTool {
  schema: ToolSchema;
  /** True if the server declares that a call destroys something. */
  destructive: boolean;
}

/**
 * Starts an MCP server, or connects to it, and lists its tools. Tools declared as destructive are left out unless they
 * are wanted by name, because rollouts call tools for real.
 * @param address a command line with its arguments, environment variables before it, or the URL of a server.
 * @param wanted names of the tools to take; null: all.
 * @throws ConfigError for no command, ToolError when the server cannot be reached or has no tools.
 */
export async function readMcpTools(
  address: string,
  taskFolder: string,
  wanted: readonly string[] | null,
): Promise<ToolSource> {
  const server = parseServer(address);
  const listed = await listTools(address, server);
  const names = listed.map(({ schema }) => schema.function.name);
  const taken = selectNames(names, wanted, `MCP server "${address}"`);
  const isTaken = (tool: ListedTool) =>
    taken.includes(tool.schema.function.name) && (wanted !== null || !tool.destructive);
  const schemas = listed.filter(isTaken).map(({ schema }) => schema);
  const left = listed.filter((tool) => wanted === null && tool.destructive).map(({ schema }) => schema.function.name);
  if (schemas.length === 0)
    throw fail(address, "has no tools that may be used", `all of them are destructive: ${left.join(", ")}`, NAME_THEM);
  const config = { ...placeServer(server, taskFolder), tools: schemas.map(({ function: { name } }) => name) };
  const comments = [
    "# The tools of an MCP server: one process for all conversations, started with the first and ended with the last.",
    "# Rollouts call them for real, many at once: name only those that may be called, and that the task needs.",
    ...(left.length > 0 ? [`# Left out, as the server calls them destructive: ${left.join(", ")}`] : []),
  ];
  const toolsFile = `${comments.join("\n")}\n${stringify({ tools: [{ class_name: "@cria/tools#McpTools", config }] })}`;
  return { toolsFile, schemas, origin: `the MCP server \`${address}\`` };
}

const NAME_THEM = "name those that rollouts may call: --tools a,b";

/** A server by its URL, or by the command line that starts it. @throws ConfigError for no command. */
export function parseServer(address: string, subject = "--from-mcp"): McpServerConfig {
  if (/^https?:\/\//.test(address)) return { url: address };
  const env: Record<string, string> = {};
  const words: string[] = [];
  for (const item of ShellReader.read(address)) {
    if (item.kind === "assignment" && item.value) env[item.name] = showWord(item.value);
    else if (item.kind === "word") words.push(showWord(item.word));
  }
  const [command, ...args] = words;
  if (command !== undefined) return { command, args, ...(Object.keys(env).length > 0 ? { env } : {}) };
  throw new ConfigError("names no server", {
    code: "config/bad-argument",
    subject,
    expected: 'a command line, as "npx -y @modelcontextprotocol/server-everything", or a URL',
    received: JSON.stringify(address),
  });
}

async function listTools(address: string, server: McpServerConfig): Promise<ListedTool[]> {
  const connection = new McpConnection(address, server);
  try {
    const tools = (await connection.listTools()).filter((tool) => tool.execution?.taskSupport !== "required");
    if (tools.length === 0)
      throw fail(address, "has no tools", "an empty list", "give the command of a server with tools");
    return tools.map((tool) => ({
      schema: fromMcpTool(tool),
      destructive: tool.annotations?.destructiveHint === true && tool.annotations.readOnlyHint !== true,
    }));
  } finally {
    await connection.close();
  }
}

/** Makes a command of the task run in the current folder: npx and paths in its arguments then mean the same. */
function placeServer(server: McpServerConfig, taskFolder: string): McpServerConfig {
  if (!("command" in server)) return server;
  return { ...server, cwd: showPath(taskFolder, process.cwd()) };
}

function fail(address: string, problem: string, received: string, remedy: string): ToolError {
  return new ToolError(problem, { code: "tool/mcp", subject: `MCP server "${address}"`, received, remedy });
}
