import { jsonSchema, ToolLoopAgent, tool } from "ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { findAiSdkTools, fromAiSdkTool, fromAiSdkTools } from "./ai-sdk-tool.js";
import { registerToolClass } from "./builtin-tools.js";
import { createTools } from "./registry.js";
import { findArgumentError } from "./validate-arguments.js";

const weather = tool({
  description: "Tells the weather.",
  inputSchema: z.object({ city: z.string(), days: z.number().default(3) }),
  execute: async ({ city, days }) => ({ city, days, sky: "clear" }),
});

describe("AI SDK tools", () => {
  it("are used as they are: schema, defaults, object answers as JSON", async () => {
    const tools = await fromAiSdkTools({ weather });
    const made = tools.get("weather")!;
    expect(made.schema.function).toEqual({
      name: "weather",
      description: "Tells the weather.",
      parameters: {
        type: "object",
        properties: { city: { type: "string" }, days: { type: "number", default: 3 } },
        required: ["city"],
      },
    });
    expect(findArgumentError(made.schema, { days: 1 })).toBe('missing argument "city"');
    const { instanceId } = await made.create("i");
    const { response } = await made.execute(instanceId, { city: "Bonn" });
    expect(JSON.parse(response.text!)).toEqual({ city: "Bonn", days: 3, sky: "clear" });
    expect(await made.calcReward("i")).toBe(0);
    await made.release("i");
  });

  it("get abort signal, call id and the trajectory's context", async () => {
    let seen: unknown;
    const probe = tool({
      inputSchema: jsonSchema<{ x: string }>({ type: "object", properties: { x: { type: "string" } } }),
      execute: ({ x }, options) => {
        seen = options;
        return x;
      },
    });
    const { signal } = new AbortController();
    const made = await fromAiSdkTool("probe", probe);
    const result = await made.execute("i", { x: "y" }, { signal, agentData: { a: 1 }, limit: 2 });
    expect(result).toEqual({ response: { text: "y" }, reward: 0, metrics: {} });
    expect(seen).toMatchObject({
      abortSignal: signal,
      toolCallId: expect.any(String),
      messages: [],
      experimental_context: { agentData: { a: 1 }, limit: 2 },
    });
  });

  it("that give a value which JSON lacks fail with its name; undefined is an empty answer", async () => {
    const give = async (output: unknown) => {
      const given = tool({ inputSchema: z.object({}), execute: () => output as object });
      const made = (await fromAiSdkTools({ given })).get("given")!;
      const { instanceId } = await made.create("i");
      return made.execute(instanceId, {});
    };
    const refused = (received: string) => expect.objectContaining({ code: "tool/bad-answer", received });
    await expect(give(new Map())).rejects.toEqual(refused("a Map"));
    await expect(give(() => 1)).rejects.toEqual(refused("a function"));
    expect((await give(undefined)).response).toEqual({ text: "" });
  });

  it("answer with the last value of a generator, and as toModelOutput says", async () => {
    const streaming = tool({
      inputSchema: z.object({}),
      async *execute() {
        yield "loading";
        yield "done";
      },
    });
    const picture = tool({
      inputSchema: z.object({}),
      execute: () => "aGk=",
      toModelOutput: ({ output }) => ({
        type: "content",
        value: [
          { type: "text", text: "see" },
          { type: "image-data", data: output, mediaType: "image/png" },
          { type: "file-data", data: output, mediaType: "audio/wav" },
        ],
      }),
    });
    const failing = tool({
      inputSchema: z.object({}),
      execute: () => 1,
      toModelOutput: () => ({ type: "error-text", value: "no" }),
    });
    const tools = await fromAiSdkTools({ streaming, picture, failing });
    const run = async (name: string) => (await tools.get(name)!.execute("i", {})).response;
    expect(await run("streaming")).toEqual({ text: "done" });
    expect(await run("picture")).toEqual({
      text: "see",
      content: [
        { type: "text", text: "see" },
        { type: "image", image: { data: "aGk=", mimeType: "image/png" } },
      ],
      audio: [expect.objectContaining({ data: "aGk=" })],
    });
    expect(await run("failing")).toEqual({ text: "error: no" });
  });

  it("answers the model with errors of refinements that JSON Schema lacks", async () => {
    const even = tool({
      inputSchema: z.object({ n: z.number().refine((n) => n % 2 === 0, "must be even") }),
      execute: ({ n }) => n,
    });
    const made = await fromAiSdkTool("even", even);
    expect((await made.execute("i", { n: 3 })).response.text).toMatch(
      /^error: invalid arguments \(.*must be even.*\)$/s,
    );
  });

  it("are found in an export: one, a record of them, an agent's; nothing else is taken for one", () => {
    const agent = new ToolLoopAgent({ model: "any/model" as never, tools: { weather } });
    expect(findAiSdkTools("export", weather)).toEqual({ export: weather });
    expect(findAiSdkTools("export", { weather, limit: 3, none: null })).toEqual({ weather });
    expect(findAiSdkTools("export", agent)).toEqual({ weather });
    for (const other of [null, 5, "x", {}, { tools: {} }, [1], () => weather])
      expect(findAiSdkTools("export", other)).toBeNull();
  });

  it("of a record or an agent are chosen by config.tools", async () => {
    registerToolClass("kit", { weather, again: weather } as never);
    const load = async (tools?: string[]) => [
      ...(await createTools([{ class_name: "kit", config: { ...(tools ? { tools } : {}) } }], ".")).keys(),
    ];
    expect(await load()).toEqual(["weather", "again"]);
    expect(await load(["again"])).toEqual(["again"]);
    await expect(load(["rain"])).rejects.toMatchObject({
      code: "tool/not-found",
      subject: 'tools rain of class_name "kit"',
      expected: "weather, again",
    });
  });

  it("without execute or a readable schema are an error", async () => {
    await expect(fromAiSdkTool("a", { inputSchema: z.object({}) })).rejects.toMatchObject({
      code: "tool/not-executable",
      subject: 'AI SDK tool "a"',
    });
    await expect(fromAiSdkTool("a", { inputSchema: 5, execute: () => 1 })).rejects.toMatchObject({
      code: "tool/bad-schema",
      subject: 'AI SDK tool "a"',
    });
  });
});
