import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tool as sdkTool, ToolLoopAgent } from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import * as ours from "./internal.js";
import {
  CalculatorTool,
  createTools,
  disposeTools,
  mcpServer,
  openTools,
  provideHostModules,
  tool,
} from "./internal.js";

const shout = tool({
  name: "shout",
  description: "Shouts.",
  inputSchema: z.object({ text: z.string() }),
  execute: ({ text }) => text.toUpperCase(),
});
const weather = sdkTool({
  description: "Tells the weather.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, sky: "clear" }),
});
/** An MCP server with one tool, which returns its process id. It leaves a file when it starts. */
const server = `
  require("node:fs").writeFileSync(process.argv[1], "");
  const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method } = JSON.parse(line);
    if (method === "initialize")
      answer(id, { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } });
    if (method === "tools/list") answer(id, { tools: [{ name: "pid", inputSchema: { type: "object" } }] });
    if (method === "tools/call") answer(id, { content: [{ type: "text", text: String(process.pid) }] });
  });`;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "cria-open-tools-"));
});
afterAll(() => rm(folder, { recursive: true }));

const serve = (marker: string, options = {}) =>
  mcpServer({ command: process.execPath, args: ["-e", server, join(folder, marker)] }, options);
const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe("openTools", () => {
  it("takes tools of every kind in one list, and ends the servers that it started", async () => {
    const calculator = new CalculatorTool();
    let disposed = 0;
    calculator.dispose = async () => void disposed++;
    const agent = new ToolLoopAgent({ model: "any/model" as never, tools: { forecast: weather } });
    const list = [shout, calculator, { weather }, agent, serve("started", { prefix: "my_" })];
    expect(existsSync(join(folder, "started"))).toBe(false);
    const { tools, dispose } = await openTools(list);
    expect([...tools.keys()]).toEqual(["shout", "calculator", "weather", "forecast", "my_pid"]);
    expect(tools.get("shout")).toBe(shout);
    const ask = async (name: string, args: object) =>
      (await tools.get(name)!.execute("i", args as Record<string, unknown>)).response.text;
    expect(await ask("shout", { text: "hi" })).toBe("HI");
    expect(await ask("forecast", { city: "Bonn" })).toBe('{"city":"Bonn","sky":"clear"}');
    const pid = Number(await ask("my_pid", {}));
    expect(isAlive(pid)).toBe(true);
    await dispose();
    expect(isAlive(pid)).toBe(false);
    expect(disposed).toBe(0);
    // Opening the same list again starts another server.
    const again = await openTools(list);
    expect(Number((await again.tools.get("my_pid")!.execute("i", {})).response.text)).not.toBe(pid);
    await again.dispose();
  });

  it("two tools of one name are an error that names both, and leaves no server behind", async () => {
    await expect(openTools([shout, { shout: weather }])).rejects.toMatchObject({
      code: "tool/duplicate",
      subject: 'tool "shout"',
      received: "tools[0]; and tools[1], a tool of the AI SDK",
    });
    let pid = 0;
    const watched = serve("twice");
    const spied = {
      name: watched.name,
      open: async () => {
        const made = await watched.open();
        pid = Number((await made[0]!.execute("i", {})).response.text);
        return made;
      },
    };
    await expect(
      openTools([spied, tool({ name: "pid", description: "", inputSchema: {}, execute: () => 1 })]),
    ).rejects.toMatchObject({ code: "tool/duplicate", received: expect.stringContaining('tools[0], MCP server "') });
    expect(pid).toBeGreaterThan(0);
    expect(isAlive(pid)).toBe(false);
  });

  it("refuses an export that is not a tool, and names its place", async () => {
    const open = (item: unknown) => openTools([shout, item as never]);
    await expect(open(weather)).rejects.toMatchObject({
      code: "tool/not-a-tool",
      subject: "tools[1]",
      received: "a tool of the AI SDK, which has no name",
    });
    await expect(open(CalculatorTool)).rejects.toMatchObject({
      code: "tool/not-a-tool",
      subject: "tools[1]",
      received: "CalculatorTool",
    });
    await expect(open(null)).rejects.toMatchObject({ code: "tool/not-a-tool", subject: "tools[1]", received: "null" });
    await expect(open({ weather, limit: 3 })).rejects.toMatchObject({
      code: "tool/not-a-tool",
      subject: "tools[1].limit",
      received: "number",
    });
    await expect(open({ again: shout })).rejects.toMatchObject({
      code: "tool/not-a-tool",
      subject: "tools[1].again",
      received: 'tool "shout"',
    });
    await expect(open({ idle: sdkTool({ inputSchema: z.object({}) }) })).rejects.toMatchObject({
      code: "tool/not-executable",
      subject: 'AI SDK tool "idle"',
    });
    expect(() => mcpServer({} as never)).toThrow(
      expect.objectContaining({ code: "tool/bad-definition", subject: "argument of mcpServer" }),
    );
    await expect(open(mcpServer({ command: "/no/such/program" }))).rejects.toMatchObject({
      code: "tool/mcp",
      subject: 'MCP server "/no/such/program"',
    });
  });
});

describe("a config", () => {
  it("names exports of tool() and mcpServer()", async () => {
    provideHostModules({ "@cria/tools": ours });
    await writeFile(
      join(folder, "mine.ts"),
      `import { mcpServer, tool, type ToolConfigEntry } from "@cria/tools";
       import { z } from "zod";
       export const repeat = tool({
         name: "repeat",
         description: "Says it again.",
         inputSchema: z.object({ text: z.string(), times: z.number().default(2) }),
         create: () => ({ said: 0 }),
         execute: ({ text, times }, { state }) => \`\${++state.said}: \${text.repeat(times)}\`,
       });
       export const server = mcpServer(${JSON.stringify({
         command: process.execPath,
         args: ["-e", server, join(folder, "config")],
       })});
       export const made = ({ config }: ToolConfigEntry) =>
         tool({ name: String(config?.name), description: "", inputSchema: { type: "object" }, execute: () => 1 });
      `,
    );
    const name = (exported: string, config?: Record<string, unknown>) => ({
      class_name: `./mine.ts#${exported}`,
      config,
    });
    const tools = await createTools([name("repeat"), name("server"), name("made", { name: "own" })], folder);
    expect([...tools.keys()]).toEqual(["repeat", "pid", "own"]);
    const repeat = tools.get("repeat")!;
    await repeat.create("a");
    expect((await repeat.execute("a", { text: "ab" })).response.text).toBe("1: abab");
    await disposeTools(tools.values());
    await expect(createTools([name("repeat", { times: 3 })], folder)).rejects.toMatchObject({
      code: "tool/bad-config",
      subject: 'class_name "./mine.ts#repeat"',
      received: 'config: {"times":3}',
    });
    await expect(createTools([name("repeat"), name("made", { name: "repeat" })], folder)).rejects.toMatchObject({
      code: "tool/duplicate",
      subject: 'tool "repeat"',
      received: "class_name ./mine.ts#repeat; and class_name ./mine.ts#made",
    });
  });
});
