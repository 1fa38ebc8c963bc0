import { Readable } from "node:stream";
import { ToolError } from "@cria/core";
import { jsonSchema } from "ai";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { BaseTool, isTool } from "./base-tool.js";
import { registerToolClass } from "./builtin-tools.js";
import { type BuiltInToolFormat, isToolFormatName, listToolFormatNames } from "./formats/format-names.js";
import { listToolFormats, toolFormats } from "./formats/registry.js";
import { interaction } from "./interactions/interaction.js";
import { openTools } from "./open-tools.js";
import { createTools } from "./registry.js";
import { type ToolStart, tool } from "./tool.js";

const square = tool({
  name: "square",
  description: "Squares a number.",
  inputSchema: z.object({ x: z.number() }),
  execute: ({ x }) => x * x,
});

/** Counts the calls of each conversation; a second call costs. */
function makeMeter(released: unknown[] = []) {
  return tool({
    name: "meter",
    description: "Counts.",
    inputSchema: z.object({ by: z.int().default(1) }),
    create: ({ kwargs }) => ({ count: Number(kwargs["start"] ?? 0), calls: 0 }),
    execute: async ({ by }, { state }) => {
      state.calls++;
      state.count += by;
      await new Promise((resolve) => setTimeout(resolve, 1));
      return { text: String(state.count), reward: state.calls > 1 ? -0.1 : 0, metrics: { calls: 1 } };
    },
    reward: ({ count }, { kwargs }) => count * Number(kwargs["scale"] ?? 1),
    release: (state) => void released.push(state),
  });
}

describe("a tool that is called", () => {
  it("returns the result of execute, after the schema has read the arguments", async () => {
    expect(await square({ x: 3 })).toBe(9);
    const twice = tool({
      name: "twice",
      description: "",
      inputSchema: z.object({ x: z.string().transform(Number), of: z.number().default(2) }),
      execute: ({ x, of }) => ({ product: x * of }),
    });
    expect(await twice({ x: "4" })).toEqual({ product: 8 });
  });

  it("refuses arguments that do not fit, and passes errors of execute on", async () => {
    await expect(square({ x: "3" } as never)).rejects.toMatchObject({ code: "tool/bad-arguments" });
    const even = z.object({ x: z.number().refine((x) => x % 2 === 0) });
    const broken = tool({
      name: "broken",
      description: "",
      inputSchema: even,
      execute: (): string => {
        throw new RangeError("no");
      },
    });
    await expect(broken({ x: 3 })).rejects.toMatchObject({ code: "tool/bad-arguments" });
    await expect(broken({ x: 2 })).rejects.toThrow(RangeError);
  });

  it("is a conversation of its own, unless it is given a state", async () => {
    const released: unknown[] = [];
    const meter = makeMeter(released);
    expect(await meter({ by: 2 }, { kwargs: { start: 40 } })).toEqual({ text: "42", reward: 0, metrics: { calls: 1 } });
    expect(await meter({})).toMatchObject({ text: "1", reward: 0 });
    expect(released).toEqual([
      { count: 42, calls: 1 },
      { count: 1, calls: 1 },
    ]);
    const state = { count: 5, calls: 1 };
    expect(await meter({}, { state })).toMatchObject({ text: "6", reward: -0.1 });
    expect(state).toEqual({ count: 6, calls: 2 });
    expect(released).toHaveLength(2);
    await expect(meter({}, { stat: state } as never)).rejects.toMatchObject({
      code: "config/unknown-key",
      subject: `call of tool "${meter.name}": stat`,
      expected: 'perhaps "state"',
    });
  });

  it("gives create its row, and execute its signal", async () => {
    const seen: unknown[] = [];
    const { signal } = new AbortController();
    const looker = tool({
      name: "look",
      description: "",
      inputSchema: {},
      create: ({ row, groundTruth }: ToolStart<{ id: number }>) => void seen.push(row.id, groundTruth),
      execute: (_, context) => seen.push(context.signal, context.agentData),
    });
    await looker({}, { row: { id: 7 }, groundTruth: "x", signal, agentData: { a: 1 } });
    expect(seen).toEqual([7, "x", signal, { a: 1 }]);
  });

  it("stays a tool: of the list, of the class, with the name of its schema", async () => {
    expect(isTool(square)).toBe(true);
    expect(square).toBeInstanceOf(BaseTool);
    expect([square.name, square.origin]).toEqual(["square", "own"]);
    expect(await answerOf(square, { x: 3 })).toBe("9");
    const { tools } = await openTools([square]);
    expect(tools.get("square")).toBe(square);
    await expect(openTools([{ square } as never])).rejects.toMatchObject({ code: "tool/not-a-tool" });
  });
});

const answerOf = async (made: BaseTool, args: Record<string, unknown> = {}) =>
  (await made.execute("direct", args)).response.text;

describe("tool()", () => {
  it("is a BaseTool with the schema of its zod type", async () => {
    expect(square).toBeInstanceOf(BaseTool);
    expect(square.name).toBe("square");
    expect(square.origin).toBe("own");
    expect(square.schema).toEqual({
      type: "function",
      function: {
        name: "square",
        description: "Squares a number.",
        parameters: { type: "object", properties: { x: { type: "number" } }, required: ["x"] },
      },
    });
    expect(await square.create("a")).toEqual({ instanceId: "a" });
    expect(await square.execute("a", { x: 3 })).toEqual({ response: { text: "9" }, reward: 0, metrics: {} });
    // A tool without `reward` keeps the base method, so that the loop does not call it.
    expect(square.calcReward).toBe(BaseTool.prototype.calcReward);
    await square.release("a");
    await square.dispose();
  });

  it("keeps a state for each of several conversations at once, and releases each once", async () => {
    const released: unknown[] = [];
    const meter = makeMeter(released);
    const ids = ["a", "b", "c"];
    await Promise.all(ids.map((id, i) => meter.create(id, { createKwargs: { start: i * 100 } })));
    const turn = async (by: number) =>
      (await Promise.all(ids.map((id) => meter.execute(id, { by })))).map(({ response, reward }) => [
        response.text,
        reward,
      ]);
    expect(await turn(1)).toEqual([
      ["1", 0],
      ["101", 0],
      ["201", 0],
    ]);
    expect(await turn(5)).toEqual([
      ["6", -0.1],
      ["106", -0.1],
      ["206", -0.1],
    ]);
    expect(await meter.calcReward("b", { scale: 0.5 })).toBe(53);
    await meter.release("b");
    await meter.release("b");
    expect(released).toEqual([{ count: 106, calls: 2 }]);
    await expect(meter.execute("b", {})).rejects.toMatchObject({
      code: "tool/unknown-instance",
      subject: 'instance b of tool "meter"',
    });
    expect(await meter.calcReward("c")).toBe(206);
    await Promise.all(ids.map((id) => meter.release(id)));
    expect(released).toHaveLength(3);
    await meter.release("never created");
  });

  it("a state may be promised, and may be undefined", async () => {
    const released: unknown[] = [];
    const made = tool({
      name: "late",
      description: "",
      inputSchema: z.object({}),
      create: async ({ instanceId }) => (instanceId === "a" ? { open: true } : undefined),
      execute: (_, { state }) => String(state?.open),
      release: (state) => void released.push(state),
    });
    for (const id of ["a", "b"]) await made.create(id);
    expect((await made.execute("a", {})).response.text).toBe("true");
    expect((await made.execute("b", {})).response.text).toBe("undefined");
    for (const id of ["a", "b"]) await made.release(id);
    expect(released).toEqual([{ open: true }, undefined]);
  });

  it("hands execute the parsed arguments: defaults, transforms, the conversation and its kwargs", async () => {
    let seen: unknown;
    const made = tool({
      name: "at",
      description: "",
      inputSchema: z.object({ day: z.string().transform((day) => new Date(day)), n: z.number().default(2) }),
      execute: ({ day, n }, { pauseDeadline, ...context }) => {
        pauseDeadline()();
        seen = context;
        return day.getUTCFullYear() * n;
      },
    });
    const { signal } = new AbortController();
    const { response } = await made.execute("a", { day: "2020-02-02" }, { signal, agentData: { s: 1 }, limit: 3 });
    expect(response.text).toBe("4040");
    expect(seen).toEqual({ instanceId: "a", state: undefined, signal, agentData: { s: 1 }, kwargs: { limit: 3 } });
    await made.execute("a", { day: "2020-02-02" });
    expect((seen as { signal: AbortSignal }).signal.aborted).toBe(false);
  });

  it("answers a call that does not fit with the name of the argument", async () => {
    const pair = z.object({ low: z.number(), high: z.number().refine((high) => high < 10, "must be below 10") });
    let calls = 0;
    const made = tool({ name: "pair", description: "", inputSchema: pair, execute: () => ++calls });
    const refused = async (args: Record<string, unknown>) => {
      const { response, metrics, reward } = await made.execute("a", args);
      expect({ metrics, reward }).toEqual({ metrics: { invalid_arguments: 1 }, reward: 0 });
      return response.text;
    };
    expect(await refused({ low: 1 })).toBe('error: invalid arguments (missing argument "high")');
    expect(await refused({ low: "1", high: 2 })).toBe('error: invalid arguments (low: expected number, got "1")');
    expect(await refused({ low: 1, high: 20 })).toBe("error: invalid arguments (high: must be below 10)");
    expect(calls).toBe(0);
    expect(await answerOf(made, { low: 1, high: 2 })).toBe("1");
  });

  it.each<[string, unknown, string]>([
    ["a text", "hi", "hi"],
    ["a number", 1.5, "1.5"],
    ["a number that JSON has not", Number.POSITIVE_INFINITY, "Infinity"],
    ["true", true, "true"],
    ["null", null, "null"],
    ["a list", [1, "a"], '[1,"a"]'],
    ["an object", { a: { b: 1 } }, '{"a":{"b":1}}'],
    ["an object that has a text among others", { text: "hi", author: "me" }, '{"text":"hi","author":"me"}'],
    ["an object whose text is none", { text: 5 }, '{"text":5}'],
    ["a date", new Date(0), '"1970-01-01T00:00:00.000Z"'],
  ])("execute may return %s", async (_, output, text) => {
    const made = tool({ name: "say", description: "", inputSchema: z.object({}), execute: () => output as object });
    expect(await made.execute("a", {})).toEqual({ response: { text }, reward: 0, metrics: {} });
  });

  it("an answer may have a reward, metrics and media", async () => {
    const image = [{ data: "aGk=" }];
    const output = { text: "see", reward: 0.5, metrics: { seen: 1 }, image };
    const made = tool({ name: "say", description: "", inputSchema: z.object({}), execute: () => output });
    expect(await made.execute("a", {})).toEqual({
      response: { text: "see", image },
      reward: 0.5,
      metrics: { seen: 1 },
    });
  });

  it("an answer may name the environment's state, by a text; other values of that name are data", async () => {
    const say = (output: object) =>
      tool({ name: "say", description: "", inputSchema: z.object({}), execute: () => output });
    const named = say({ text: "You are in the hall.", state: "hall" });
    expect(await named.execute("a", {})).toEqual({
      response: { text: "You are in the hall." },
      reward: 0,
      metrics: {},
      state: "hall",
    });
    for (const output of [{ text: "hot", state: 3 }, { state: "open" }]) {
      const text = JSON.stringify(output);
      expect(await say(output).execute("a", {})).toEqual({ response: { text }, reward: 0, metrics: {} });
    }
  });

  it("refuses a value that JSON cannot express, and names the tool", async () => {
    const circle: Record<string, unknown> = {};
    circle["itself"] = circle;
    for (const [output, received] of [
      [undefined, "undefined"],
      [() => 1, "function"],
      [1n, "BigInt"],
      [circle, "circular"],
      // JSON would write {} for these.
      [new Map([["a", 1]]), "a Map"],
      [new Set([1]), "a Set"],
      [{ later: Promise.resolve(1) }, "a Promise at later"],
      [new Error("no judge"), 'an error ("no judge")'],
      [/x/, "a RegExp"],
      [new ReadableStream(), "a ReadableStream"],
      [Readable.from(["a"]), "a Readable"],
      [(function* () {})(), "a Generator"],
      [{ rows: [{ found: new Map() }] }, "a Map at rows.0.found"],
    ] as const) {
      const made = tool({ name: "say", description: "", inputSchema: z.object({}), execute: () => output as object });
      const error = await made.execute("a", {}).catch((thrown) => thrown);
      expect(error).toBeInstanceOf(ToolError);
      const subject = 'execute of tool "say"';
      expect(error).toMatchObject({ code: "tool/bad-answer", subject, received: expect.stringContaining(received) });
    }
  });

  it("answers with the JSON of any value that has one", async () => {
    const date = new Date(0);
    class Point {
      x = 1;
    }
    for (const [output, text] of [
      [{}, "{}"],
      [Object.create(null), "{}"],
      [{ at: date, skip: undefined, f: () => 1 }, '{"at":"1970-01-01T00:00:00.000Z"}'],
      [new Point(), '{"x":1}'],
      [Uint8Array.of(7), '{"0":7}'],
      [Object.assign(new Map(), { toJSON: () => "mine" }), '"mine"'],
      [null, "null"],
      [Number.NaN, "NaN"],
    ] as const) {
      const made = tool({ name: "say", description: "", inputSchema: z.object({}), execute: () => output as object });
      expect((await made.execute("a", {})).response).toEqual({ text });
    }
  });

  it("takes JSON Schema, jsonSchema() of the AI SDK, and any Standard Schema that gives JSON Schema", async () => {
    const parameters = { type: "object", properties: { x: { type: "string" } }, required: ["x"] } as const;
    const plain = tool({ name: "a", description: "", inputSchema: parameters, execute: ({ x }) => `${x}!` });
    const given = jsonSchema<{ x: string }>(
      { ...parameters, required: ["x"] },
      {
        validate: (value) =>
          (value as { x: string }).x === "no"
            ? { success: false, error: new Error("x: not no") }
            : { success: true, value: { x: `<${(value as { x: string }).x}>` } },
      },
    );
    const sdk = tool({ name: "b", description: "", inputSchema: given, execute: ({ x }) => x });
    const standard = {
      "~standard": {
        version: 1 as const,
        vendor: "mine",
        types: undefined as { input: { x: string }; output: { x: number } } | undefined,
        validate: (value: unknown) => {
          const x = Number((value as { x: string }).x);
          return Number.isNaN(x) ? { issues: [{ message: "not a number", path: [{ key: "x" }] }] } : { value: { x } };
        },
        jsonSchema: { input: () => ({ $schema: "https://json-schema.org/draft/2020-12/schema", ...parameters }) },
      },
    };
    const own = tool({ name: "c", description: "", inputSchema: standard, execute: ({ x }) => x + 1 });
    for (const made of [plain, sdk, own]) {
      expect(made.schema.function.parameters).toEqual(parameters);
      expect(await answerOf(made, {})).toBe('error: invalid arguments (missing argument "x")');
    }
    expect(await answerOf(plain, { x: "y" })).toBe("y!");
    expect(await answerOf(sdk, { x: "y" })).toBe("<y>");
    expect(await answerOf(sdk, { x: "no" })).toBe("error: invalid arguments (x: not no)");
    expect(await answerOf(own, { x: "1" })).toBe("2");
    expect(await answerOf(own, { x: "y" })).toBe("error: invalid arguments (x: not a number)");
  });

  it("is refused at its definition, not at its first call", () => {
    const define = (more: object) => () =>
      tool({ name: "x", description: "", inputSchema: z.object({}), execute: () => "", ...more });
    for (const name of ["", "with space", "ä", "a".repeat(65), undefined])
      expect(define({ name })).toThrow(
        expect.objectContaining({
          code: "tool/bad-definition",
          subject: "name of a tool",
          expected: "1 to 64 letters, digits, _ and -",
        }),
      );
    expect(define({ name: "a-B_9" })).not.toThrow();
    expect(define({ description: undefined })).toThrow(
      expect.objectContaining({ code: "tool/bad-definition", subject: 'description of tool "x"' }),
    );
    expect(define({ execute: "ls" })).toThrow(
      expect.objectContaining({ code: "tool/bad-definition", subject: 'execute of tool "x"' }),
    );
    expect(define({ relase: () => {} })).toThrow(
      expect.objectContaining({ code: "config/unknown-key", subject: "tool: relase", expected: 'perhaps "release"' }),
    );
    expect(define({ reward: 1 })).toThrow(
      expect.objectContaining({ code: "config/bad-value", subject: "tool: reward" }),
    );
    expect(define({ inputSchema: undefined })).toThrow(
      expect.objectContaining({ code: "tool/bad-schema", subject: 'tool "x"', received: "nothing" }),
    );
    const zod3 = { _def: {}, "~standard": { vendor: "zod", version: 1, validate: () => ({ value: 1 }) } };
    expect(define({ inputSchema: zod3 })).toThrow(
      expect.objectContaining({
        code: "tool/bad-schema",
        subject: 'tool "x"',
        received: "a type of zod that gives no JSON Schema",
      }),
    );
    for (const inputSchema of [z.string(), { type: "array" }])
      expect(define({ inputSchema })).toThrow(
        expect.objectContaining({ code: "tool/bad-schema", subject: 'parameters of tool "x"' }),
      );
    expect(define({ inputSchema: z.union([z.object({}), z.string()]) })).toThrow(
      expect.objectContaining({ code: "tool/bad-schema", subject: 'inputSchema of tool "x"' }),
    );
    for (const inputSchema of [z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]), {}])
      expect(define({ inputSchema })).not.toThrow();
    expect(define({ inputSchema: z.object({ at: z.date() }) })).toThrow(
      expect.objectContaining({ code: "tool/bad-schema", subject: "zod type of a tool's parameters" }),
    );
    expect(define({ inputSchema: { type: "objekt" } })).toThrow(
      expect.objectContaining({
        code: "tool/bad-schema",
        subject: 'parameters of tool "x"',
        received: 'type: "objekt"',
        expected: expect.stringContaining('perhaps "object"'),
      }),
    );
    expect(define({ inputSchema: jsonSchema(Promise.resolve({ type: "object" })) })).toThrow(
      expect.objectContaining({ code: "tool/bad-schema", subject: 'tool "x"', received: "jsonSchema() of a promise" }),
    );
    expect(define({ name: "" })).toThrow(ToolError);
  });

  it("stands in a config as an export, and takes its tool_schema there", async () => {
    registerToolClass("my-square", square as never);
    const tool_schema = {
      type: "function" as const,
      function: { name: "quadrat", parameters: { type: "object", properties: { x: { type: "number" } } } },
    };
    const tools = await createTools([{ class_name: "my-square", tool_schema }], ".");
    expect((await tools.get("quadrat")!.execute("a", { x: 4 })).response.text).toBe("16");
  });
});

describe("types of tool()", () => {
  const inputSchema = z.object({ x: z.string().transform(Number), tags: z.array(z.string()).optional() });

  it("input, state and answer are inferred", () => {
    tool({
      name: "a",
      description: "",
      inputSchema,
      create: ({ kwargs }) => {
        expectTypeOf(kwargs).toEqualTypeOf<Record<string, unknown>>();
        return { seen: new Set<number>() };
      },
      execute: async (input, { state, signal }) => {
        expectTypeOf(input).toEqualTypeOf<{ x: number; tags?: string[] | undefined }>();
        expectTypeOf(state).toEqualTypeOf<{ seen: Set<number> }>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
        return { text: "a", reward: 1 };
      },
      reward: (state) => {
        expectTypeOf(state).toEqualTypeOf<{ seen: Set<number> }>();
        return state.seen.size;
      },
      release: (state) => state.seen.clear(),
    });
    tool({
      name: "b",
      description: "",
      inputSchema,
      create: async () => [1],
      execute: (_, { state }) => {
        expectTypeOf(state).toEqualTypeOf<number[]>();
        return 1;
      },
    });
    tool({
      name: "c",
      description: "",
      inputSchema: { type: "object" },
      execute: (input, { state }) => {
        expectTypeOf(input).toEqualTypeOf<Record<string, unknown>>();
        expectTypeOf(state).toEqualTypeOf<undefined>();
        return null;
      },
    });
    tool({
      name: "d",
      description: "",
      inputSchema: jsonSchema<{ y: boolean }>({ type: "object" }),
      execute: (input) => {
        expectTypeOf(input).toEqualTypeOf<{ y: boolean }>();
        return [input.y];
      },
    });
    expectTypeOf(square).toExtend<BaseTool>();
  });

  it("a call takes the schema's input, and returns the result of execute", () => {
    const add = tool({
      name: "add",
      description: "",
      inputSchema: z.object({ a: z.string().transform(Number), b: z.number().default(1) }),
      create: ({ row }: ToolStart<{ start: number }>) => ({ sum: row.start }),
      execute: async ({ a, b }, { state }) => ({ text: String(state.sum + a + b), reward: 1 }),
    });
    expectTypeOf<Parameters<typeof add>[0]>().toEqualTypeOf<{ a: string; b?: number | undefined }>();
    expectTypeOf<ReturnType<typeof add>>().toEqualTypeOf<Promise<{ text: string; reward: number }>>();
    expectTypeOf<ReturnType<typeof square>>().toEqualTypeOf<Promise<number>>();
    type Options = NonNullable<Parameters<typeof add>[1]>;
    expectTypeOf<Options["row"]>().toEqualTypeOf<{ start: number } | undefined>();
    expectTypeOf<Options["state"]>().toEqualTypeOf<{ sum: number } | undefined>();
    // @ts-expect-error x is a number
    square({ x: "3" }).catch(() => undefined);
  });

  it("formats of calls are those that have a parser", () => {
    expect(listToolFormatNames().sort()).toEqual(toolFormats.names());
    const known = listToolFormats().flatMap(({ name, aliases }) => [name, ...aliases]);
    expect(known.filter((name) => !isToolFormatName(name))).toEqual([]);
    expect(["gpt-oss", "openai", "deepseek_v31"].filter((name) => !known.includes(name))).toEqual([]);
    expectTypeOf<"hermes">().toExtend<BuiltInToolFormat>();
  });

  it("refuses values of wrong types", () => {
    const common = { name: "a", description: "", inputSchema };
    // @ts-expect-error x is a number after the transform
    tool({ ...common, execute: ({ x }) => x.toUpperCase() });
    // @ts-expect-error there is no y
    tool({ ...common, execute: ({ y }) => String(y) });
    // @ts-expect-error nothing is no answer
    tool({ ...common, execute: () => {} });
    // @ts-expect-error nor is a promise of nothing
    tool({ ...common, execute: async () => {} });
    // @ts-expect-error the state has no such field
    tool({ ...common, create: () => ({ n: 1 }), execute: (_, { state }) => state.m });
    // @ts-expect-error a reward is a number
    tool({ ...common, create: () => ({ n: 1 }), execute: () => 1, reward: ({ n }) => String(n) });
    // @ts-expect-error a tool has a name
    expect(() => tool({ description: "", inputSchema, execute: () => 1 })).toThrow(
      expect.objectContaining({ code: "tool/bad-definition", subject: "name of a tool", received: "nothing" }),
    );
  });
});

it("a tool keeps a state where it has its own create, or as it says; so does an interaction of functions", () => {
  const inputSchema = z.object({});
  const plain = { name: "a", description: "", inputSchema, execute: () => 1 };
  const create = () => ({ calls: 0 });
  expect(tool(plain).keepsState).toBe(false);
  expect(tool({ ...plain, create }).keepsState).toBe(true);
  expect(tool({ ...plain, create, keepsState: false }).keepsState).toBe(false);
  expect(tool({ ...plain, keepsState: true }).keepsState).toBe(true);
  class Plain extends BaseTool {
    async execute() {
      return { response: {}, reward: 0, metrics: {} };
    }
  }
  class Keeping extends Plain {
    override async create(instanceId: string) {
      return { instanceId };
    }
  }
  const { schema } = tool(plain);
  expect([new Plain(schema).keepsState, new Keeping(schema).keepsState]).toEqual([false, true]);
  const reply = () => "no";
  expect(interaction(reply).keepsState).toBe(false);
  expect(interaction({ create, reply }).keepsState).toBe(true);
  expect(interaction({ create, reply, keepsState: false }).keepsState).toBe(false);
});

describe("the state of a tool", () => {
  const plain = {
    name: "add",
    description: "",
    inputSchema: z.object({ by: z.number() }),
    create: () => ({ sum: 0, seen: [] as number[] }),
  };

  it("is said by snapshot, and comes back in other conversations by restore, whose result is released", async () => {
    const released: number[] = [];
    const add = tool({
      ...plain,
      execute: ({ by }, { state }) => {
        state.sum += by;
        return state.sum;
      },
      snapshot: ({ sum }) => ({ from: sum }),
      restore: ({ from }, state) => ({ ...state, sum: from }),
      release: ({ sum }) => void released.push(sum),
    });
    const call = async (id: string, by: number) => (await add.execute(id, { by })).response.text;
    await add.create("a");
    await call("a", 5);
    const taken = await add.snapshot!("a");
    expect(taken).toEqual({ from: 5 });
    for (const id of ["b", "c"]) {
      await add.create(id);
      await add.restore!(id, taken);
    }
    expect([await call("a", 1), await call("b", 2), await call("b", 3), await call("c", 4)]).toEqual([
      "6",
      "7",
      "10",
      "9",
    ]);
    for (const id of ["a", "b", "c"]) await add.release(id);
    expect(released).toEqual([6, 10, 9]);
    await expect(add.snapshot!("a")).rejects.toMatchObject({ code: "tool/unknown-instance" });
  });

  it("needs both functions, and create; without them the tool has neither", () => {
    const execute = () => 1;
    const [snapshot, restore] = [() => ({}), () => plain.create()];
    expect(tool({ ...plain, execute }).snapshot).toBeUndefined();
    expect(tool({ ...plain, execute }).restore).toBeUndefined();
    const wrong = [
      { ...plain, execute, snapshot },
      { ...plain, execute, restore },
      { ...plain, execute, snapshot, restore, create: undefined },
      { ...plain, execute, snapshot: {}, restore },
    ];
    for (const definition of wrong)
      expect(() => tool(definition as never)).toThrow(
        expect.objectContaining({ code: "tool/bad-definition", subject: 'snapshot and restore of tool "add"' }),
      );
  });
});
