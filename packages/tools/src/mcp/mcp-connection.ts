import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { ToolError } from "@cria/core";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { CallToolResult, Tool } from "@modelcontextprotocol/sdk/types.js";
import { importOptional } from "../import-optional.js";
import { describeCause, describeServer, LastWords } from "./describe-server.js";
import type { McpServerConfig } from "./mcp-server-config.js";

export interface McpConnectionOptions {
  /** Limit for starting and shaking hands; default 30. */
  connectTimeoutS?: number;
  /** Limit for one call, in addition to the timeout of the agent loop; default 600. */
  callTimeoutS?: number;
}

interface Live {
  client: Client;
  transport: Transport & { pid?: number | null };
}

/** Time for a server to answer a ping after an error. */
const PING_TIMEOUT_MS = 2000;
/** Time that an error waits for the last stderr output of a dead server. */
const LAST_WORDS_MS = 50;
/** The SDK's code for a connection that ended during a request. */
const CONNECTION_CLOSED = -32000;

/**
 * One MCP server over stdio or streamable HTTP, shared by all trajectories: its protocol matches answers to calls. When
 * the server dies, the calls in flight fail, and the next call starts or reaches the server again. No call is repeated,
 * because it may already have had its effect.
 */
export class McpConnection {
  private live: Promise<Live> | null = null;
  private closed = false;
  private lastPid: number | null = null;
  /** Output and exit of the stdio server that was started last. */
  private lastWords = new LastWords();

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
    try {
      do {
        const page = await client.listTools({ cursor }, { timeout: this.connectTimeoutMs });
        tools.push(...page.tools);
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      return tools;
    } catch (cause) {
      throw await this.fail("does not list its tools", cause);
    }
  }

  /** @throws ToolError when the server cannot be reached, dies during the call, or refuses it. */
  async callTool(tool: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<CallToolResult> {
    const { client } = await this.connect();
    const timeout = (this.options.callTimeoutS ?? 600) * 1000;
    try {
      return (await client.callTool({ name: tool, arguments: args }, undefined, { signal, timeout })) as CallToolResult;
    } catch (cause) {
      throw await this.fail(`call of ${tool} failed`, cause);
    }
  }

  /** Ends the connection, and the server if this object started it. */
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

  private async connect(): Promise<Live> {
    if (this.closed) throw await this.fail("is closed", new Error("a call after dispose"));
    this.live ??= this.open().catch(async (cause) => {
      this.live = null;
      throw await this.fail("cannot be reached", cause);
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
      const words = new LastWords();
      this.lastWords = words;
      transport.stderr?.on("data", (chunk: Buffer) => words.hear(chunk));
      const start = transport.start.bind(transport);
      transport.start = async () => {
        await start();
        // The SDK does not report how the server's process ended.
        const { _process } = transport as unknown as { _process?: ChildProcess };
        _process?.once("exit", (code, signal) => words.end(code, signal));
      };
      return transport;
    }
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    // The class declares `sessionId` a little wider than the interface.
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

  /**
   * Pings the server: over HTTP a dead server shows only as an error on a stream, and calls in flight would wait for
   * their timeout.
   */
  private async checkAlive(live: Live): Promise<void> {
    if (live.transport.pid !== undefined) return;
    // Errors of the ping would call this handler again.
    live.client.onerror = undefined;
    try {
      await live.client.ping({ timeout: PING_TIMEOUT_MS });
      live.client.onerror = () => void this.checkAlive(live);
    } catch {
      this.forget(live);
      await live.client.close().catch(() => {});
    }
  }

  private async fail(summary: string, cause: unknown): Promise<ToolError> {
    const words = this.lastWords;
    const isClosed = (cause as { code?: unknown } | null)?.code === CONNECTION_CLOSED;
    // The server's last stderr output may still be in the pipe.
    if (isClosed) await sleep(LAST_WORDS_MS);
    const tells = isClosed || words.hasEnded || summary === "cannot be reached" ? words.describe() : [];
    return new ToolError(summary, {
      code: "tool/mcp",
      subject: `MCP server "${this.name}"`,
      expected: `an answer of ${describeServer(this.server)}`,
      received: [describeCause(cause, this.server), ...tells].join("; "),
      ...(summary === "cannot be reached" ? { remedy: this.describeRemedy(cause) } : {}),
      cause,
    });
  }

  private describeRemedy(cause: unknown): string {
    if ("url" in this.server) return "check the URL, the headers, and that the server runs";
    const { code } = cause as { code?: unknown };
    return code === "ENOENT"
      ? `install ${this.server.command}, or write its path; a cwd must exist too`
      : "run the command in a terminal: it must keep running and wait for messages on stdin";
  }
}
