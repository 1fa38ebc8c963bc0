import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as tools from "./internal.js";
import {
  BaseTool,
  CalculatorTool,
  createTools,
  disposeTools,
  loadToolConfig,
  provideHostModules,
  registerToolClass,
  toolClasses,
} from "./internal.js";

let folder: string;
const myTool = `
import { BaseTool, defineToolSchema, type ToolResult } from "@cria/tools";
import { ToolError } from "@cria/core";
import { z } from "zod";

enum Side { Left = "left" }

export class MyTool extends BaseTool {
  private readonly uses: number[] = [];
  constructor(config: Record<string, unknown> = {}, schema?: BaseTool["schema"]) {
    super(schema ?? defineToolSchema("my_tool", "Mine.", z.object({ x: z.number() })), config);
  }
  async execute(_id: string, { x }: { x: number }): Promise<ToolResult> {
    this.uses.push(x);
    return { response: { text: Side.Left + x + this.config.suffix }, reward: 0.5, metrics: {} };
  }
}

export const shout = {
  description: "Shouts.",
  inputSchema: z.object({ text: z.string() }),
  execute: ({ text }: { text: string }) => text.toUpperCase(),
};
export const pair = async (entry: { config: { names: string[] } }) =>
  entry.config.names.map((name) => new MyTool({}, defineToolSchema(name, "", { type: "object" })));
export const fails = () => { throw new ToolError("no", { code: "x", subject: "y" }); };
export const notATool = 5;
`;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "cria-tools-"));
  await writeFile(join(folder, "my-tool.ts"), myTool);
  await writeFile(
    join(folder, "tools.yaml"),
    `tools:
  - class_name: ./my-tool.ts#MyTool
    config: { suffix: "!" }
  - class_name: "@cria/tools#CalculatorTool"
    tool_schema:
      type: function
      function:
        name: calc
        description: Counts.
        parameters: { type: object, properties: { expression: { type: string } }, required: [expression] }
`,
  );
});
afterAll(() => rm(folder, { recursive: true }));

describe("class_name", () => {
  it("./my-tool.ts#MyTool loads TypeScript without a build step, anywhere, with our own BaseTool", async () => {
    provideHostModules({ "@cria/tools": tools });
    const loaded = await loadToolConfig(join(folder, "tools.yaml"));
    expect([...loaded.keys()]).toEqual(["my_tool", "calc"]);
    expect(loaded.get("my_tool")).toBeInstanceOf(BaseTool);
    expect(await loaded.get("my_tool")!.execute("i", { x: 3 })).toMatchObject({
      response: { text: "left3!" },
      reward: 0.5,
    });
    expect(loaded.get("calc")!.schema.function.description).toBe("Counts.");
  });

  it("may be an AI SDK tool or a factory of several tools", async () => {
    const tools = await createTools(
      [{ class_name: "./my-tool.ts#shout" }, { class_name: "./my-tool.ts#pair", config: { names: ["a", "b"] } }],
      folder,
    );
    expect([...tools.keys()]).toEqual(["shout", "a", "b"]);
    expect((await tools.get("shout")!.execute("i", { text: "hi" })).response.text).toBe("HI");
  });

  it("may be a package's export, or a name registered in code", async () => {
    registerToolClass("mine", CalculatorTool);
    expect([...(await createTools([{ class_name: "mine" }], folder)).keys()]).toEqual(["calculator"]);
    const ofRun = toolClasses.extend();
    ofRun.register("of-a-run", CalculatorTool);
    expect([...(await createTools([{ class_name: "of-a-run" }], folder, ofRun)).keys()]).toEqual(["calculator"]);
    await expect(createTools([{ class_name: "of-a-run" }], folder)).rejects.toMatchObject({
      code: "tool/not-found",
      subject: 'class_name "of-a-run"',
    });
    await expect(createTools([{ class_name: "zod#z" }], import.meta.dirname)).rejects.toMatchObject({
      code: "tool/not-a-tool",
      subject: 'class_name "zod#z"',
    });
  });

  it("is refused with the reason if it cannot be used", async () => {
    const create = (class_name: string) => createTools([{ class_name }], folder);
    await expect(create("./my-tool.ts#Nothing")).rejects.toMatchObject({
      code: "tool/not-found",
      subject: 'class_name "./my-tool.ts#Nothing"',
      received: "exports MyTool, fails, notATool, pair, shout",
    });
    await expect(create("./my-tool.ts")).rejects.toMatchObject({
      code: "tool/not-found",
      subject: 'class_name "./my-tool.ts"',
      received: "a name without #Export",
    });
    await expect(create("./missing.ts#A")).rejects.toMatchObject({
      code: "tool/not-found",
      subject: 'class_name "./missing.ts#A"',
    });
    await expect(create("./my-tool.ts#notATool")).rejects.toMatchObject({
      code: "tool/not-a-tool",
      subject: 'class_name "./my-tool.ts#notATool"',
    });
    await expect(create("./my-tool.ts#fails")).rejects.toMatchObject({ code: "x", subject: "y" });
    await expect(create("my_tools.calculator.Calculator")).rejects.toMatchObject({
      code: "tool/not-found",
      subject: 'class_name "my_tools.calculator.Calculator"',
      received: "the path of a Python class that has no counterpart here",
    });
    const twice = [{ class_name: "@cria/tools#CalculatorTool" }, { class_name: "@cria/tools#CalculatorTool" }];
    await expect(createTools(twice, folder)).rejects.toMatchObject({
      code: "tool/duplicate",
      subject: 'tool "calculator"',
    });
    const schema = { type: "function" as const, function: { name: "bad", parameters: { type: "objekt" } } };
    await expect(createTools([{ class_name: "mine", tool_schema: schema }], folder)).rejects.toMatchObject({
      code: "tool/bad-schema",
      subject: 'parameters of tool "bad"',
    });
    await expect(loadToolConfig(join(folder, "my-tool.ts"))).rejects.toMatchObject({
      code: "config/unreadable",
      subject: expect.stringContaining("my-tool.ts"),
    });
    await expect(loadToolConfig(join(folder, "none.yaml"))).rejects.toMatchObject({
      code: "config/unreadable",
      subject: expect.stringContaining("none.yaml"),
    });
  });

  it("each kind of tool takes the tool_schema of its entry", async () => {
    await writeFile(
      join(folder, "kinds.mjs"),
      `
export class Fixed {
  schema = { type: "function", function: { name: "fixed", description: "", parameters: { type: "object" } } };
  get name() { return this.schema.function.name; }
  async execute() { return { response: { text: this.name }, reward: 0, metrics: {} }; }
}
export const instance = new Fixed();
export const make = () => new Fixed();
export const two = () => ["a", "b"].map((name) => {
  const tool = new Fixed();
  tool.schema = { type: "function", function: { name, description: "", parameters: { type: "object" } } };
  return tool;
});
export const sdk = { description: "Long.", inputSchema: { jsonSchema: { type: "object" } }, execute: () => "sdk" };
export const tools = { sdk };
export const frozen = Object.freeze(new Fixed());
`,
    );
    const schemaOf = (name: string) => ({
      type: "function" as const,
      function: { name, description: "Short.", parameters: { type: "object", properties: { x: { type: "string" } } } },
    });
    const entryOf = (name: string, schema = name) => ({
      class_name: `./kinds.mjs#${name}`,
      tool_schema: schemaOf(schema),
    });
    const names = ["Fixed", "instance", "make", "sdk", "tools"];
    const tools = await createTools([...names.map((name) => entryOf(name)), entryOf("two", "b")], folder);
    expect([...tools.keys()]).toEqual([...names, "a", "b"]);
    for (const name of [...names, "b"]) {
      expect(tools.get(name)!.schema, name).toEqual(schemaOf(name));
      expect(tools.get(name)!.name, name).toBe(name);
    }
    expect(tools.get("a")!.schema.function.description).toBe("");
    expect((await tools.get("sdk")!.execute("i", {})).response.text).toBe("sdk");
    await expect(createTools([entryOf("two", "c")], folder)).rejects.toMatchObject({
      code: "tool/bad-schema",
      subject: 'tool_schema "c"',
      received: "a, b",
    });
    await expect(createTools([entryOf("instance", "again")], folder)).rejects.toMatchObject({
      code: "tool/bad-schema",
      subject: 'tool_schema "again"',
      received: "one object in two entries",
    });
    await expect(createTools([entryOf("frozen", "again")], folder)).rejects.toMatchObject({
      code: "tool/bad-schema",
      subject: 'tool_schema "again"',
      received: "Cannot redefine property: schema",
    });
    await expect(createTools([{ class_name: "mine", tool_schema: 5 as never }], folder)).rejects.toMatchObject({
      code: "tool/bad-schema",
      subject: "schema of a tool",
      received: "5",
    });
  });

  it("tools are disposed together, also when one fails to", async () => {
    const disposed: number[] = [];
    const make = (i: number) =>
      Object.assign(new CalculatorTool(), {
        dispose: async () => {
          disposed.push(i);
          if (i === 0) throw new Error("stuck");
        },
      });
    await disposeTools([make(0), make(1)]);
    expect(disposed).toEqual([0, 1]);
  });
});
