import { ToolError } from "@cria/core";
import { type ChecksOf, checkOptions, optionChecks } from "@cria/core/internal";
import type { ToolSource } from "../open-tools.js";
import { preview } from "../validate-arguments.js";
import { connectMcpServer, type McpToolOptions } from "./create-mcp-tools.js";
import { describeServer } from "./describe-server.js";
import type { McpServerConfig } from "./mcp-server-config.js";

export interface McpServerOptions extends McpToolOptions {
  /** Its name in errors; default: its command or URL. */
  name?: string;
}

const { number, text } = optionChecks;

const serverChecks: ChecksOf<Required<McpServerOptions>> = {
  name: text,
  tools: [Array.isArray, "a list of names of tools"],
  prefix: [(value) => typeof value === "string", "a text"],
  connectTimeoutS: number,
  callTimeoutS: number,
};

/**
 * An MCP server for a list of tools: `mcpServer({ command: "npx", args: ["some-server"] })`, or `mcpServer({ url })`.
 * Opening the list starts or reaches the server, each time anew.
 * @throws ToolError when it has neither command nor url; ConfigError for an unknown or wrong option.
 */
export function mcpServer(server: McpServerConfig, options: McpServerOptions = {}): ToolSource {
  const { command, url } = server as { command?: unknown; url?: unknown };
  if (typeof command !== "string" && typeof url !== "string") {
    throw new ToolError("names no MCP server", {
      code: "tool/bad-definition",
      subject: "argument of mcpServer",
      expected: "{ command, args } or { url }",
      received: preview(server),
    });
  }
  checkOptions("mcpServer", options, serverChecks);
  const name = options.name ?? describeServer(server);
  return { name: `MCP server "${name}"`, open: () => connectMcpServer(name, server, options) };
}
