import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { ToolError } from "@cria/core";
import type { BaseTool } from "../base-tool.js";
import { fromMcpTool } from "../converters/mcp.js";
import type { ToolConfigEntry } from "../tool-config-entry.js";
import { McpConnection, type McpConnectionOptions } from "./mcp-connection.js";
import type { McpServerConfig } from "./mcp-server-config.js";
import { McpTool } from "./mcp-tool.js";

export interface McpToolOptions extends McpConnectionOptions {
  /** Names of the tools to take; all when not given. */
  tools?: readonly string[];
  /** Put before each name, where servers share names. */
  prefix?: string;
}

/**
 * Every tool of an MCP server as a tool of an agent, except tools that the server runs only as background tasks.
 * @throws ToolError when the server cannot be reached or lacks a tool that `options.tools` names.
 */
export async function connectMcpServer(
  name: string,
  server: McpServerConfig,
  options: McpToolOptions = {},
): Promise<BaseTool[]> {
  const connection = new McpConnection(name, server, options);
  try {
    const all = (await connection.listTools()).filter((tool) => tool.execution?.taskSupport !== "required");
    checkPresence(
      options.tools,
      all.map((tool) => tool.name),
      `MCP server "${name}"`,
    );
    const taken = all.filter((tool) => options.tools?.includes(tool.name) ?? true);
    return taken.map((tool) => {
      const schema = fromMcpTool(tool);
      schema.function.name = (options.prefix ?? "") + tool.name;
      return new McpTool(connection, tool.name, schema);
    });
  } catch (error) {
    await connection.close();
    throw error;
  }
}

interface McpEntryConfig {
  mcpServers?: Record<string, McpServerConfig>;
  tools?: string[];
  prefix?: string;
  connect_timeout_s?: number;
  timeout?: number;
}

/**
 * The tools of a config entry: `config` is one server (`command` or `url`), or `mcpServers` by name; or the entry's
 * `mcp` names a JSON file of them. `config.tools` and `mcp.tool_selected_list` choose among their tools.
 */
export async function createMcpTools(entry: ToolConfigEntry, baseFolder: string): Promise<BaseTool[]> {
  const config = (entry.config ?? {}) as McpEntryConfig;
  const servers = mapServers(await listServers(entry, config, baseFolder), baseFolder);
  const { prefix = "" } = config;
  const wanted = config.tools ?? entry.mcp?.tool_selected_list;
  const options = { connectTimeoutS: config.connect_timeout_s, callTimeoutS: config.timeout, prefix };
  const made: BaseTool[] = [];
  try {
    for (const [name, server] of Object.entries(servers)) made.push(...(await connectMcpServer(name, server, options)));
    // With several servers the config does not say which one has a wanted tool.
    const names = made.map((tool) => tool.name.slice(prefix.length));
    checkPresence(wanted, names, `MCP servers ${Object.keys(servers).join(", ")}`);
  } catch (error) {
    await Promise.allSettled(made.map((tool) => tool.dispose()));
    throw error;
  }
  return made.filter((tool) => wanted?.includes(tool.name.slice(prefix.length)) ?? true);
}

/** A server's relative working directory starts at the config's folder. */
function mapServers(servers: Record<string, McpServerConfig>, baseFolder: string): Record<string, McpServerConfig> {
  const place = (server: McpServerConfig) =>
    "command" in server && server.cwd !== undefined ? { ...server, cwd: resolve(baseFolder, server.cwd) } : server;
  return Object.fromEntries(Object.entries(servers).map(([name, server]) => [name, place(server)]));
}

function checkPresence(wanted: readonly string[] | undefined, present: readonly string[], subject: string): void {
  const missing = wanted?.filter((name) => !present.includes(name)) ?? [];
  if (missing.length === 0) return;
  throw new ToolError("do not exist", {
    code: "tool/not-found",
    subject: `tools ${missing.join(", ")} of ${subject}`,
    expected: present.join(", "),
  });
}

async function listServers(
  entry: ToolConfigEntry,
  config: McpEntryConfig,
  baseFolder: string,
): Promise<Record<string, McpServerConfig>> {
  if (config.mcpServers) return startAt(config.mcpServers, baseFolder);
  if ("command" in config || "url" in config) return startAt({ mcp: config as McpServerConfig }, baseFolder);
  const fail = (received: string, cause?: unknown) =>
    new ToolError("names no MCP server", {
      code: "tool/bad-config",
      subject: `class_name "${entry.class_name}"`,
      expected: "config.command, config.url, config.mcpServers, or mcp.mcp_servers_config_path",
      received,
      cause,
    });
  if (!entry.mcp?.mcp_servers_config_path) throw fail(JSON.stringify(entry.config ?? {}));
  const file = resolve(baseFolder, entry.mcp.mcp_servers_config_path);
  try {
    const { mcpServers } = JSON.parse(await readFile(file, "utf8"));
    if (typeof mcpServers === "object" && mcpServers !== null) return startAt(mcpServers, dirname(file));
  } catch (cause) {
    throw fail(`${file}: ${(cause as Error).message}`, cause);
  }
  throw fail(`${file} has no mcpServers`);
}

/**
 * Sets a server's working folder to that of the file that names it: paths in the file, also in arguments, start there.
 */
function startAt(servers: Record<string, McpServerConfig>, folder: string): Record<string, McpServerConfig> {
  return Object.fromEntries(
    Object.entries(servers).map(([name, server]) => [
      name,
      "command" in server ? { ...server, cwd: resolve(folder, server.cwd ?? ".") } : server,
    ]),
  );
}
