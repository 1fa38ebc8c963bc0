/** Command or address of a server: the entries of the `mcpServers` object that MCP hosts share. */
export type McpServerConfig =
  | { command: string; args?: string[]; env?: Record<string, string>; cwd?: string }
  | { url: string; headers?: Record<string, string> };
