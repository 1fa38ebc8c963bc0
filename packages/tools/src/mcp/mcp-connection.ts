import { ToolError } from "@cria/core";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { CallToolResult, Tool } from "@modelcontextprotocol/sdk/types.js";
import { importOptional } from "../import-optional.js";

/** How to reach a server: the entries of the `mcpServers` object that MCP hosts share. */
export type McpServerConfig =
  | { command: string; args?: string[]; env?: Record<string, string>; cwd?: string }
  | { url: string; headers?: Record<string, string> };

export interface McpConnectionOptions {
  /** For starting and shaking hands; default 30. */
  connectTimeoutS?: number;
  /** For one call, beneath the timeout of the agent loop; default 600. */
  callTimeoutS?: number;
}

interface Live {
  client: Client;
  transport: Transport & { pid?: number | null };
}

/** How long a server that gave an error may take to prove that it lives. */
const PING_TIMEOUT_MS = 2000;

/**
 * One MCP server over stdio or streamable HTTP, shared by all trajectories: its protocol matches answers to calls. When
 * the server dies, the calls in flight fail, and the next call starts or reaches it anew; no call is repeated, since it
 * may have had its effect.
 */
export class McpConnection {
  private live: Promise<Live> | null = null;
  private closed = false;
  private lastPid: number | null = null;
  private stderr = "";

  constructor(
    readonly name: string,
    private readonly server: McpServerConfig,
    private readonly options: McpConnectionOptions = {},
  ) {}

  /** Process id of a stdio server while it runs. */
  get pid(): number | null {
    return this.lastPid;
  }

  /** @throws ToolError when the server cannot be reached. */
  async listTools(): Promise<Tool[]> {
    const { client } = await this.connect();
    const tools: Tool[] = [];
    let cursor: string | undefined;
    do {
      const page = await client.listTools({ cursor }, { timeout: this.connectTimeoutMs });
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return tools;
  }

  /** @throws ToolError when the server cannot be reached, dies during the call, or refuses it. */
  async callTool(tool: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<CallToolResult> {
    const { client } = await this.connect();
    const timeout = (this.options.callTimeoutS ?? 600) * 1000;
    try {
      return (await client.callTool({ name: tool, arguments: args }, undefined, { signal, timeout })) as CallToolResult;
    } catch (cause) {
      throw this.fail(`call of ${tool} failed`, cause);
    }
  }

  /** Ends the connection, and the server where this started it. */
  async close(): Promise<void> {
    this.closed = true;
    const live = this.live;
    this.live = null;
    await live?.then(
      ({ client }) => client.close(),
      () => {},
    );
  }

  private get connectTimeoutMs(): number {
    return (this.options.connectTimeoutS ?? 30) * 1000;
  }

  private connect(): Promise<Live> {
    if (this.closed) throw this.fail("is closed", new Error("a call after dispose"));
    this.live ??= this.open().catch((cause) => {
      this.live = null;
      throw this.fail("cannot be reached", cause);
    });
    return this.live;
  }

  private async open(): Promise<Live> {
    const { Client } = await importOptional(
      () => import("@modelcontextprotocol/sdk/client/index.js"),
      "@modelcontextprotocol/sdk",
      "an MCP tool",
    );
    const client = new Client({ name: "cria", version: "0.1.0" });
    const transport = await this.makeTransport();
    const live = { client, transport };
    await client.connect(transport, { timeout: this.connectTimeoutMs }).catch(async (cause) => {
      await client.close().catch(() => {});
      throw cause;
    });
    this.lastPid = transport.pid ?? null;
    client.onclose = () => this.forget(live);
    client.onerror = () => void this.checkAlive(live);
    return live;
  }

  private async makeTransport(): Promise<Live["transport"]> {
    if ("command" in this.server) {
      const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
      const transport = new StdioClientTransport({ ...this.server, stderr: "pipe" });
      this.stderr = "";
      transport.stderr?.on("data", (chunk: Buffer) => {
        this.stderr = (this.stderr + chunk.toString()).slice(-1000);
      });
      return transport;
    }
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    // The class declares `sessionId` a little wider than the interface does.
    return new StreamableHTTPClientTransport(new URL(this.server.url), {
      requestInit: { headers: this.server.headers },
    }) as Transport;
  }

  private forget(live: Live): void {
    void this.live?.then((current) => {
      if (current === live) {
        this.live = null;
        this.lastPid = null;
      }
    });
  }

  /** Over HTTP a dead server shows only as an error on a stream: calls in flight would wait for their timeout. */
  private async checkAlive(live: Live): Promise<void> {
    if (live.transport.pid !== undefined) return;
    // Its own errors would come back here.
    live.client.onerror = undefined;
    try {
      await live.client.ping({ timeout: PING_TIMEOUT_MS });
      live.client.onerror = () => void this.checkAlive(live);
    } catch {
      this.forget(live);
      await live.client.close().catch(() => {});
    }
  }

  private fail(summary: string, cause: unknown): ToolError {
    const message = cause instanceof Error ? cause.message : String(cause);
    const stderr = this.stderr.trim();
    return new ToolError(summary, {
      code: "tool/mcp",
      subject: `MCP server "${this.name}"`,
      received: summary === "cannot be reached" && stderr ? `${message}; it wrote: ${stderr}` : message,
      cause,
    });
  }
}
