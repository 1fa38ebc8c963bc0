import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { BaseTool } from "../base-tool.js";
import { disposeTools } from "../open-tools.js";
import { createTools } from "../registry.js";
import { findArgumentError } from "../validate-arguments.js";
import { connectMcpServer } from "./create-mcp-tools.js";
import { McpConnection } from "./mcp-connection.js";
import { McpTool } from "./mcp-tool.js";

const everything = createRequire(import.meta.url).resolve("@modelcontextprotocol/server-everything/dist/index.js");
const stdio = { command: process.execPath, args: [everything, "stdio"] };

async function findPort(): Promise<number> {
  const server = createServer().listen(0);
  await new Promise((done) => server.once("listening", done));
  const { port } = server.address() as { port: number };
  await new Promise((done) => server.close(done));
  return port;
}

async function startHttp(port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [everything, "streamableHttp"], {
    env: { ...process.env, PORT: String(port) },
  });
  await new Promise<void>((done, fail) => {
    child.stderr.on("data", (chunk) => String(chunk).includes("listening") && done());
    child.once("exit", () => fail(new Error("server did not start")));
  });
  return child;
}

const stop = async (child: ChildProcess) => {
  const ended = new Promise((done) => child.once("exit", done));
  child.kill("SIGKILL");
  await ended;
};

let port: number;
let http: ChildProcess;
beforeAll(async () => {
  port = await findPort();
  http = await startHttp(port);
});
afterAll(() => stop(http));

describe.each(["stdio", "streamable HTTP"])("MCP over %s", (kind) => {
  let tools: Map<string, BaseTool>;
  const run = async (name: string, args: Record<string, unknown>) => tools.get(name)!.execute("i", args);
  beforeAll(async () => {
    const server = kind === "stdio" ? stdio : { url: `http://localhost:${port}/mcp` };
    tools = await createTools([{ class_name: "@cria/tools#McpTools", config: server }], ".");
  });
  afterAll(() => disposeTools(tools.values()));

  it("any server's tools become tools, with their schemas", () => {
    expect([...tools.keys()]).toEqual(expect.arrayContaining(["echo", "get-sum", "get-tiny-image"]));
    const { schema } = tools.get("get-sum")!;
    expect(schema.function.parameters).toMatchObject({ type: "object", required: ["a", "b"] });
    expect(findArgumentError(schema, { a: 1, b: 2 })).toBeNull();
    expect(findArgumentError(schema, { a: "1", b: 2 })).toBe('a: expected number, got "1"');
  });

  it("answers with text, images and structured content, many calls at once", async () => {
    const echoes = await Promise.all(Array.from({ length: 20 }, (_, i) => run("echo", { message: `m${i}` })));
    expect(echoes.map(({ response }) => response.text)).toEqual(echoes.map((_, i) => `Echo: m${i}`));
    expect((await run("get-sum", { a: 2, b: 3 })).response.text).toMatch(/\b5\b/);
    const { response } = await run("get-tiny-image", {});
    const image = { data: expect.any(String), mimeType: "image/png" };
    expect(response.content).toContainEqual({ type: "image", image });
    expect((await run("get-structured-content", { location: "New York" })).response.text).toMatch(/temperature/);
  });

  it("passes on the server's error", async () => {
    const { response, metrics } = await run("get-sum", { a: "x" });
    expect(response.text).toMatch(/^error: .*a/s);
    expect(metrics).toEqual({ mcp_error: 1 });
  });

  it("ends a call when its signal aborts, and goes on", async () => {
    const tool = tools.get("trigger-long-running-operation")!;
    const abort = new AbortController();
    const running = tool.execute("i", { duration: 30, steps: 30 }, { signal: abort.signal });
    // The server reads calls in order: it has the long one.
    await run("echo", { message: "there" });
    abort.abort();
    await expect(running).rejects.toMatchObject({
      code: "tool/mcp",
      subject: 'MCP server "mcp"',
      received: expect.stringContaining("MCP error -32001"),
    });
    expect((await run("echo", { message: "on" })).response.text).toBe("Echo: on");
  });
});

describe("a server that dies", () => {
  const longCall = (connection: McpConnection) =>
    connection.callTool("trigger-long-running-operation", { duration: 30, steps: 30 });
  const echo = async (connection: McpConnection) =>
    (await connection.callTool("echo", { message: "on" })).content[0] as { text: string };

  it("over stdio: the calls in flight fail, the next call starts it anew", async () => {
    const connection = new McpConnection("everything", stdio);
    await connection.listTools();
    const pid = connection.pid!;
    const calls = [longCall(connection), longCall(connection)];
    // The server reads calls in order: it has the long ones.
    await echo(connection);
    process.kill(pid, "SIGKILL");
    for (const result of await Promise.allSettled(calls)) {
      expect(result).toMatchObject({ status: "rejected", reason: { code: "tool/mcp" } });
    }
    expect((await echo(connection)).text).toBe("Echo: on");
    expect(connection.pid).not.toBe(pid);
    const started = connection.pid!;
    await connection.close();
    expect(() => process.kill(started, 0)).toThrow(/ESRCH/);
    await expect((async () => echo(connection))()).rejects.toMatchObject({
      code: "tool/mcp",
      subject: 'MCP server "everything"',
      received: expect.stringContaining("a call after dispose"),
    });
  });

  it("over HTTP: the calls in flight fail, the next call after its return works", async () => {
    const ownPort = await findPort();
    const first = await startHttp(ownPort);
    const connection = new McpConnection("everything", { url: `http://localhost:${ownPort}/mcp` });
    await connection.listTools();
    const call = longCall(connection);
    await echo(connection);
    first.kill("SIGKILL");
    await expect(call).rejects.toMatchObject({ code: "tool/mcp" });
    await expect(echo(connection)).rejects.toMatchObject({ code: "tool/mcp", subject: 'MCP server "everything"' });
    const second = await startHttp(ownPort);
    expect((await echo(connection)).text).toBe("Echo: on");
    await connection.close();
    await stop(second);
  });

  it("or never starts is refused, with its output", async () => {
    const broken = { command: process.execPath, args: ["-e", "console.error('no licence'); process.exit(3)"] };
    await expect(connectMcpServer("broken", broken)).rejects.toMatchObject({
      code: "tool/mcp",
      subject: 'MCP server "broken"',
      received: expect.stringContaining("no licence"),
    });
    await expect(connectMcpServer("none", { command: "/no/such/program" })).rejects.toMatchObject({
      code: "tool/mcp",
      subject: 'MCP server "none"',
      received: "spawn /no/such/program ENOENT",
    });
    const nobody = await findPort();
    await expect(connectMcpServer("none", { url: `http://localhost:${nobody}/mcp` })).rejects.toMatchObject({
      code: "tool/mcp",
      subject: 'MCP server "none"',
      received: expect.stringContaining("ECONNREFUSED"),
    });
  });

  it("at its start says by which command, how it ended, and the last lines that it wrote, but no secret", async () => {
    const noisy = 'for (let i = 0; i < 500; i++) console.error("line " + i); process.exitCode = 3';
    const args = ["-e", noisy, "--", "--api-key", "s3cret", "--token=s3cret"];
    const error = await connectMcpServer("noisy", { command: process.execPath, args }).catch((e: unknown) => e);
    expect(error).toMatchObject({
      code: "tool/mcp",
      expected: expect.stringContaining(`${process.execPath} -e "for (let i = 0;`),
      received: expect.stringMatching(/exit code 3\b[\s\S]*\n {4}line 490\n[\s\S]* {4}line 499$/),
    });
    expect(String(error)).toContain("-- --api-key *** --token=***");
    expect(String(error)).not.toMatch(/s3cret|line 489/);
  });

  it("in the middle of a call says so too", async () => {
    const lines = `
      const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
      require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
        const { id, method } = JSON.parse(line);
        if (method === "initialize")
          answer(id, { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } });
        if (method === "tools/list") answer(id, { tools: [{ name: "die", inputSchema: { type: "object" } }] });
        if (method === "tools/call") { console.error("disk full"); process.exit(28); }
      });`;
    const [tool] = await connectMcpServer("dying", { command: process.execPath, args: ["-e", lines] });
    await expect(tool!.execute("i", {})).rejects.toMatchObject({
      code: "tool/mcp",
      subject: 'MCP server "dying"',
      received: expect.stringMatching(/Connection closed[\s\S]*exit code 28\b[\s\S]*\n {4}disk full/),
    });
    await tool!.dispose();
  });

  it("over HTTP with status and the head of the body", async () => {
    const page = createHttpServer((_, response) => {
      response.writeHead(503, { "content-type": "text/html" }).end(`<h1>Under repair</h1>${"x".repeat(5000)}`);
    }).listen(0);
    await new Promise((done) => page.once("listening", done));
    const { port: own } = page.address() as { port: number };
    const url = `http://me:s3cret@localhost:${own}/mcp?api_key=s3cret`;
    const plain = `http://localhost:${own}/mcp`;
    const error = await connectMcpServer("web", { url: plain }).catch((e: unknown) => e);
    const received = expect.stringMatching(/^HTTP status 503: <h1>Under repair<\/h1>x+\.\.\.$/);
    expect(error).toMatchObject({ code: "tool/mcp", received });
    expect(String(error).length).toBeLessThan(700);
    expect(String(await connectMcpServer("web", { url }).catch((e: unknown) => e))).not.toContain("s3cret");
    await new Promise((done) => page.close(done));
  });
});

describe("config of MCP tools", () => {
  it("takes the field's form: a file of servers and a list of tools", async () => {
    const folder = await mkdtemp(join(tmpdir(), "cria-mcp-"));
    await writeFile(join(folder, "servers.json"), JSON.stringify({ mcpServers: { everything: stdio } }));
    const entry = {
      class_name: "verl.tools.mcp_search_tool.MCPSearchTool",
      config: { rate_limit: 120, timeout: 120 },
      mcp: { mcp_servers_config_path: "./servers.json", tool_selected_list: ["echo"] },
    };
    const tools = await createTools([entry], folder);
    expect([...tools.keys()]).toEqual(["echo"]);
    expect(tools.get("echo")).toBeInstanceOf(McpTool);
    await disposeTools(tools.values());
    await rm(folder, { recursive: true });
  });

  it("starts a server in the folder of the file that names it", async () => {
    const folder = await mkdtemp(join(tmpdir(), "cria-mcp-"));
    await writeFile(join(folder, "server.mjs"), `await import(${JSON.stringify(everything)});\n`);
    const config = { command: process.execPath, args: ["server.mjs", "stdio"], tools: ["echo"] };
    const tools = await createTools([{ class_name: "@cria/tools#McpTools", config }], folder);
    expect([...tools.keys()]).toEqual(["echo"]);
    await disposeTools(tools.values());
    await rm(folder, { recursive: true });
  });

  it("prefixes names, and names tools that are missing", async () => {
    const class_name = "@cria/tools#McpTools";
    const tools = await createTools([{ class_name, config: { ...stdio, tools: ["echo"], prefix: "x_" } }], ".");
    expect((await tools.get("x_echo")!.execute("i", { message: "a" })).response.text).toBe("Echo: a");
    await disposeTools(tools.values());
    await expect(createTools([{ class_name, config: { ...stdio, tools: ["nope"] } }], ".")).rejects.toMatchObject({
      code: "tool/not-found",
      subject: "tools nope of MCP servers mcp",
    });
    const two = { mcpServers: { a: stdio, b: stdio }, tools: ["nope"] };
    await expect(createTools([{ class_name, config: two }], ".")).rejects.toMatchObject({
      code: "tool/not-found",
      subject: "tools nope of MCP servers a, b",
    });
    await expect(createTools([{ class_name, config: {} }], ".")).rejects.toMatchObject({
      code: "tool/bad-config",
      subject: 'class_name "@cria/tools#McpTools"',
    });
  });
});

describe("a server's answer", () => {
  const answer = async (content: unknown[]) => {
    const connection = { callTool: async () => ({ content }) } as unknown as McpConnection;
    const schema = { type: "function" as const, function: { name: "x", parameters: {} } };
    return (await new McpTool(connection, "x", schema).execute("i", {})).response;
  };

  it("has parts that are not text apart by their kind, in any order", async () => {
    const blob = (mimeType: string) => ({ type: "resource", resource: { uri: "file:///a", mimeType, blob: "aGk=" } });
    expect(
      await answer([
        { type: "text", text: "see" },
        { type: "audio", data: "aGk=", mimeType: "audio/wav" },
        blob("image/png"),
        blob("video/mp4"),
        blob("application/zip"),
      ]),
    ).toEqual({
      text: "see\n[resource file:///a]",
      content: [
        { type: "text", text: "see" },
        { type: "image", image: { data: "aGk=", mimeType: "image/png" } },
        { type: "text", text: "[resource file:///a]" },
      ],
      video: [{ data: "aGk=", mimeType: "video/mp4" }],
      audio: [{ data: "aGk=", mimeType: "audio/wav" }],
    });
    expect(await answer([])).toEqual({ text: "" });
  });
});
