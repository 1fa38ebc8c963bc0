import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ToolSchema } from "@cria/core";
import { amount, someOf } from "@cria/core/testing";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { thinkingTags } from "../parsers/thinking.js";
import { defineToolSchema } from "../schema.js";
import { getToolFormat, loadToolFormat, registerToolParser, toolFormats } from "./registry.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

const parse = (format: string, text: string, tools?: ToolSchema[]) => getToolFormat(format).parse(text, tools);
const formats = [
  "apertus",
  "apriel",
  "chatml-json",
  "cohere",
  "deepseek_v3",
  "deepseek_v32",
  "functiongemma",
  "gemma4",
  "glm45",
  "gpt_oss",
  "granite",
  "hermes",
  "hy3",
  "kimi_k2",
  "kimi_k3",
  "llama3_json",
  "minimax_m2",
  "minimax_m3",
  "mistral",
  "python",
  "pythonic",
  "qwen3_coder",
  "solar_open",
] as const;
const folder = mkdtempSync(join(tmpdir(), "cria-parsers-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("registry", () => {
  it("has every format of the spec, other frameworks' names for them, and takes more", () => {
    expect(toolFormats.names()).toEqual(expect.arrayContaining([...formats]));
    expect(getToolFormat("gpt-oss")).toBe(getToolFormat("gpt_oss"));
    expect(getToolFormat("openai")).toBe(getToolFormat("gpt_oss"));
    expect(getToolFormat("deepseek_v31")).toBe(getToolFormat("deepseek_v3"));
    registerToolParser("none", (text) => ({ content: text, calls: [] }));
    expect(parse("none", "x")).toEqual({ content: "x", calls: [] });
  });

  it("an unknown format is an error that names the known ones", () => {
    for (const format of ["hermse", "__proto__", "toString"])
      expect(() => getToolFormat(format)).toThrow(
        expect.objectContaining({
          code: "config/unknown-name",
          subject: "multi_turn.format",
          expected: expect.stringContaining("deepseek_v3, deepseek_v32"),
        }),
      );
  });

  it("loads a user's parser by module and export, TypeScript without a build step", async () => {
    const source = `export const parse = (text: string) => ({ content: "", calls: [{ name: text, arguments: {} }] });
export const depth = 3;`;
    writeFileSync(join(folder, "mine.ts"), source);
    const mine = await loadToolFormat("./mine.ts#parse", folder);
    expect(mine.parse("x")).toEqual({ content: "", calls: [{ name: "x", arguments: {} }] });
    expect(await loadToolFormat("hermes", folder)).toBe(getToolFormat("hermes"));
    const ofRun = toolFormats.extend();
    ofRun.register("of_run", mine);
    expect(await loadToolFormat("of_run", folder, ofRun)).toBe(mine);
    expect(await loadToolFormat("openai", folder, ofRun)).toBe(getToolFormat("gpt_oss"));
    await expect(loadToolFormat("of_run", folder)).rejects.toMatchObject({
      code: "config/unknown-name",
      subject: "multi_turn.format",
      received: "of_run",
    });
    await expect(loadToolFormat("./mine.ts#depth", folder)).rejects.toMatchObject({
      code: "config/bad-value",
      subject: 'multi_turn.format "./mine.ts#depth"',
      received: "number",
    });
    await expect(loadToolFormat("./mine.ts#other", folder)).rejects.toMatchObject({
      code: "config/unreadable",
      subject: 'multi_turn.format "./mine.ts#other"',
      received: "exports depth, parse",
    });
    await expect(loadToolFormat("hermse", folder)).rejects.toMatchObject({
      code: "config/unknown-name",
      subject: "multi_turn.format",
      received: "hermse",
    });
  });
});

/** Nested and escaped JSON, with every format's own tags inside a string. */
const hard = {
  text: 'quote " backslash \\ brace } line\nunicode ☃ </tool_call><tool_call></parameter2>',
  deep: { list: [1, -2.5e3, true, null, { "key with }": [] }] },
};
const argumentsJson = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 });

describe.each([
  ["hermes", "arguments", (json: string) => `<tool_call>\n${json}\n</tool_call>`],
  ["llama3_json", "parameters", (json: string) => `<|python_tag|>${json}`],
  ["chatml-json", "arguments", (json: string) => `\`\`\`json\n${json}\n\`\`\``],
] as const)("%s", (format, key, wrap) => {
  const write = (name: string, args: unknown) => wrap(JSON.stringify({ name, [key]: args }));

  it("finds several calls, nested and escaped JSON, and text around them", () => {
    const turn = parse(format, `hi ${write("a", hard)} and ${write("b", {})} bye`);
    expect(turn.calls).toEqual([
      { name: "a", arguments: hard },
      { name: "b", arguments: {} },
    ]);
    expect(turn.content.replace(/\s+/g, " ")).toBe("hi and bye");
  });

  it("reads arguments that are JSON text once more", () => {
    expect(parse(format, write("a", JSON.stringify(hard))).calls).toEqual([{ name: "a", arguments: hard }]);
  });

  it("reads back any JSON", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string({ minLength: 1 }), argumentsJson), { minLength: 1 }), (calls) => {
        const turn = parse(format, calls.map(([name, args]) => write(name, args)).join("\n"));
        // JSON has no -0.
        const expected = calls.map(([name, args]) => ({ name, arguments: JSON.parse(JSON.stringify(args)) }));
        expect(turn.calls).toEqual(expected);
        expect(turn.content.trim()).toBe("");
      }),
    );
  });

  it("makes malformed calls errors that the model can read", () => {
    const broken = [
      wrap('{"name": "a", "arguments": {"x": 1}'),
      wrap('{"name": "a", "arguments": {"x": tru}}'),
      wrap("{'name': 'a', 'arguments': {}}"),
      wrap('{"name": "a", "arguments": [1]}'),
      wrap('{"name": "a", "arguments": "x"}'),
      wrap(`{"name": "a", "arguments": {"x": ${"[".repeat(5000)}${"]".repeat(5000)}}}`),
    ];
    for (const text of broken) {
      const { calls } = parse(format, text);
      expect(calls, text.slice(0, 80)).toHaveLength(1);
      expect(calls[0]!.error).toMatch(/^error: invalid call \(.+\)$/);
      expect(calls[0]!.arguments).toEqual({});
    }
  });

  it("reads a good call after a broken one", () => {
    const { calls } = parse(format, `${wrap('{"name": "a", "arguments": {<}}')}\n${write("b", { x: 1 })}`);
    expect(calls.map((call) => [call.name, call.error !== undefined])).toEqual([
      ["", true],
      ["b", false],
    ]);
  });

  it("leaves text without calls alone", () => {
    for (const text of ["", "hello", "a { b } [c] {", 'the answer is {"answer": 5}', "f(x) = {x | x > 0}"])
      expect(parse(format, text)).toEqual({ content: text, calls: [] });
  });
});

describe("hermes", () => {
  it("finds the end of a call by its JSON: a string may contain the closing tag", () => {
    const text = '<tool_call>{"name":"a","arguments":{"html":"<b></tool_call></b>"}}</tool_call> rest';
    expect(parse("hermes", text)).toEqual({
      content: " rest",
      calls: [{ name: "a", arguments: { html: "<b></tool_call></b>" } }],
    });
  });

  it("names the problem", () => {
    const error = (text: string) => parse("hermes", text).calls.map((call) => call.error);
    expect(error('<tool_call>{"name":"a","arguments":{}}')[0]).toMatch(/<\/tool_call> is missing/);
    expect(error("<tool_call>")[0]).toMatch(/<\/tool_call> is missing/);
    expect(error("<tool_call>{</tool_call>")[0]).toMatch(/not valid JSON/);
    expect(error('<tool_call>{"name":1}</tool_call>')[0]).toMatch(/no name/);
    expect(error("<tool_call>null</tool_call>")[0]).toMatch(/not an object/);
    expect(error('<tool_call>{"name":"a","arguments":{}} extra</tool_call>')[0]).toMatch(/not valid JSON/);
    expect(error('<tool_call>{"x <tool_call>{"name":"b","arguments":{}}</tool_call>')).toHaveLength(2);
  });
});

describe("llama3_json and chatml-json", () => {
  it("llama3_json separates calls by semicolons and ignores end marks", () => {
    const text =
      '<|python_tag|>{"type": "function", "name": "a", "parameters": {}}; {"name": "b", "parameters": {"x": "1"}}<|eom_id|>';
    expect(parse("llama3_json", text)).toEqual({
      content: "",
      calls: [
        { name: "a", arguments: {} },
        { name: "b", arguments: { x: "1" } },
      ],
    });
  });

  it("chatml-json reads lists and the OpenAI message form", () => {
    const call = { name: "a", arguments: { x: 1 } };
    const openAi = { tool_calls: [{ type: "function", function: { name: "a", arguments: '{"x":1}' } }] };
    expect(parse("chatml-json", JSON.stringify([call, call])).calls).toEqual([call, call]);
    expect(parse("chatml-json", JSON.stringify(openAi)).calls).toEqual([call]);
    expect(parse("llama3_json", JSON.stringify(openAi.tool_calls[0])).calls).toEqual([call]);
  });
});

describe("qwen3_coder", () => {
  const schema = defineToolSchema("edit", "", {
    type: "object",
    properties: {
      path: { type: "string" },
      line: { type: "integer" },
      ratio: { anyOf: [{ type: "number" }, { type: "null" }] },
      force: { type: "boolean" },
      options: { $ref: "#/$defs/options" },
      tags: { type: ["array", "null"] },
      level: { enum: [1, 2] },
    },
    $defs: { options: { type: "object" } },
  });
  const write = (values: Record<string, string>) =>
    `<tool_call>\n<function=edit>\n${Object.entries(values)
      .map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`)
      .join("")}</function>\n</tool_call>`;

  it("types values by the schema, and keeps text where none is given or nothing fits", () => {
    const values = {
      path: "12",
      line: "3",
      ratio: "-.5e1",
      force: "True",
      options: '{"a": [1]}',
      tags: "null",
      level: "2",
      other: "7",
    };
    expect(parse("qwen3_coder", write(values), [schema]).calls).toEqual([
      {
        name: "edit",
        arguments: {
          path: "12",
          line: 3,
          ratio: -5,
          force: true,
          options: { a: [1] },
          tags: null,
          level: 2,
          other: "7",
        },
      },
    ]);
    expect(parse("qwen3_coder", write(values)).calls[0]!.arguments).toEqual(values);
    const wrong = { line: "three", force: "yes", options: "[1]" };
    expect(parse("qwen3_coder", write(wrong), [schema]).calls[0]!.arguments).toEqual(wrong);
  });

  it("looks at each schema once, in however many ways schemas refer to one another", () => {
    const refers = Array.from({ length: 60 }, () => ({ $ref: "#/$defs/a" }));
    const tangled = defineToolSchema("edit", "", {
      type: "object",
      properties: { line: { anyOf: [...refers, { $ref: "#/$defs/b" }] } },
      $defs: { a: { anyOf: [...refers] }, b: { oneOf: [{ type: "integer" }, ...refers] } },
    });
    expect(parse("qwen3_coder", write({ line: "3" }), [tangled]).calls[0]!.arguments).toEqual({ line: 3 });
  });

  it("keeps values as they are but for one line break on either side: code, tags and all", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "\n", " ", "<", "<function=x>", "</tool_call>") }), (path) => {
        expect(parse("qwen3_coder", write({ path }), [schema]).calls).toEqual([{ name: "edit", arguments: { path } }]);
      }),
    );
  });

  it("finds several calls, the outer tag there or not, and text around them", () => {
    const bare = "<function=b></function>";
    const turn = parse("qwen3_coder", `x ${write({ line: "1" })} y ${bare} z${bare}`, [schema]);
    expect(turn.calls).toEqual([
      { name: "edit", arguments: { line: 1 } },
      { name: "b", arguments: {} },
      { name: "b", arguments: {} },
    ]);
    expect(turn.content).toBe("x  y  z");
  });

  it("makes malformed calls errors that the model can read", () => {
    const error = (text: string) => parse("qwen3_coder", text).calls.map((call) => call.error ?? call.name);
    expect(error("<tool_call>{}</tool_call>")[0]).toMatch(/no <function=name>/);
    expect(error("<tool_call><function=>")[0]).toMatch(/no <function=name>/);
    expect(error("<tool_call><function=a><parameter=x>1")[0]).toMatch(/"x" is not closed/);
    expect(error("<tool_call><function=a><parameter=x>1</parameter></tool_call>")[0]).toMatch(
      /<\/function> is missing/,
    );
    expect(error("<function=a>1</parameter></function>")[0]).toMatch(/without <parameter/);
    expect(error("<tool_call><function=a><tool_call><function=b></function></tool_call>")[1]).toBe("b");
  });
});

describe("python", () => {
  it("makes fences calls of the tool that takes code", () => {
    const text = 'first\n```python\nprint("```")\n\nx = 1\n```\nthen\n```py\ny\n```\nlast';
    const code = ['print("```")\n\nx = 1', "y"];
    const call = (name: string) => code.map((body) => ({ name, arguments: { code: body } }));
    expect(parse("python", text)).toEqual({ content: "first\nthen\nlast", calls: call("code_interpreter") });
    const other = defineToolSchema("other", "", { type: "object", properties: { x: { type: "string" } } });
    const run = defineToolSchema("run", "", { type: "object", properties: { code: { type: "string" } } });
    expect(parse("python", text, [other, run]).calls).toEqual(call("run"));
  });

  it("an open fence is an error, other fences are content", () => {
    expect(parse("python", "```python\nx").calls[0]!.error).toMatch(/not closed/);
    expect(parse("python", "```js\nx\n```")).toEqual({ content: "```js\nx\n```", calls: [] });
  });
});

describe("pythonic", () => {
  const call = (code: string) => `<|tool_call_start|>${code}<|tool_call_end|>`;
  const read = (code: string) => parse("pythonic", call(code)).calls[0]!;

  it("reads literals of Python and of JSON", () => {
    const values: [string, unknown][] = [
      ["1", 1],
      ["-1_000.5e-1", -100.05],
      ["+.5", 0.5],
      ["[True, false, None, null, 1.,]", [true, false, null, null, 1]],
      ["(1, 'a')", [1, "a"]],
      ['{\'a\': {"b": [{}]}, "__proto__": 1}', JSON.parse('{"a": {"b": [{}]}, "__proto__": 1}')],
      ["'it\\'s \"so\"'", `it's "so"`],
      ['"\\u00e9\\x41\\U0001F999\\n\\/\\q\\\\"', "éA🦙\n/\\q\\"],
      ["'one\ntwo' 'three'", "one\ntwothree"],
      // As LFM2.5's template prints it.
      ["'it's, he's'", "it's, he's"],
      ["['a', 'it's']", ["a", "it's"]],
    ];
    for (const [code, value] of values)
      expect(read(`[f(x=${code}, y = 2)]`), code).toEqual({ name: "f", arguments: { x: value, y: 2 } });
  });

  it("reads several calls, one without a list, and a list in JSON", () => {
    expect(parse("pythonic", `I look.\n${call("[ a.b(), c-d(x=1) ]")} so`)).toEqual({
      content: "I look.\n so",
      calls: [
        { name: "a.b", arguments: {} },
        { name: "c-d", arguments: { x: 1 } },
      ],
    });
    expect(read("f(x=1)")).toEqual({ name: "f", arguments: { x: 1 } });
    const json = [{ name: "a", arguments: { x: "<|tool_call_end|>" } }];
    expect(parse("pythonic", call(JSON.stringify(json))).calls).toEqual(json);
  });

  it("takes a bare list on lines of its own for calls, and one within a line for text", () => {
    expect(parse("pythonic", 'I look.\n[f(a="x\ny"), g()] \nDone.')).toEqual({
      content: "I look.\n\nDone.",
      calls: [
        { name: "f", arguments: { a: "x\ny" } },
        { name: "g", arguments: {} },
      ],
    });
    for (const text of ["see [f(a=1)]", "[f(a=1)](x)", "[f(x)]", "[f(a==1)]", "[link](a=1)", "[f()", "[1, 2]"])
      expect(parse("pythonic", text)).toEqual({ content: text, calls: [] });
    expect(parse("pythonic", "[f(a=1").calls).toMatchObject([{ error: expect.any(String), text: "[f(a=1" }]);
  });

  it("names the problem", () => {
    const error = (code: string) => read(code).error;
    expect(error("[f(x=y)]")).toMatch(/no value/);
    expect(error("[f(1)]")).toMatch(/name=value/);
    expect(error("[f(x=1]")).toMatch(/\) is missing/);
    expect(error("[f(x={1: 2})]")).toMatch(/keys are strings/);
    expect(error("[]")).toMatch(/no call/);
    expect(error("")).toMatch(/no name/);
    expect(error("[f(x=1e999)]")).toMatch(/too large/);
    expect(error(`[f(x=${"[".repeat(200)}`)).toMatch(/too deep/);
    expect(parse("pythonic", "<|tool_call_start|>[f()]").calls[0]!.error).toMatch(/_end\|> is missing/);
    const two = parse("pythonic", `${call("[f(x=y)]")}${call("[g()]")}`).calls;
    expect(two.map((one) => one.error ?? one.name)).toEqual([expect.stringMatching(/no value/), "g"]);
  });
});

describe.each([
  ["functiongemma", "<start_function_call>", "<end_function_call>", "<escape>"],
  ["gemma4", "<|tool_call>", "<tool_call|>", '<|"|>'],
])("%s", (format, open, close, quote) => {
  const read = (body: string) => parse(format, `${open}${body}${close}`).calls[0]!;

  it("reads values of every type, keys bare or quoted, and the templates' forms of null", () => {
    const body = `call:f{a:${quote}x "y" {z},\n${open}${quote},b:-1.5e2,c:[true,False,,None,{d:${quote}${quote}}],${quote}k y${quote}:null,e:}`;
    expect(read(body)).toEqual({
      name: "f",
      arguments: { a: `x "y" {z},\n${open}`, b: -150, c: [true, false, null, null, { d: "" }], "k y": null, e: null },
    });
    expect(read("call:math.add-1{}")).toEqual({ name: "math.add-1", arguments: {} });
    const two = parse(format, `so ${open}call:a{}${close}${open}call:b{}${close}`);
    expect(two).toEqual({
      content: "so ",
      calls: [
        { name: "a", arguments: {} },
        { name: "b", arguments: {} },
      ],
    });
  });

  it("names the problem, and reads a good call behind it", () => {
    expect(read("f{}").error).toMatch(/no name/);
    expect(read("call:f{x:Paris}")).toMatchObject({ name: "f", error: expect.stringMatching(/texts stand between/) });
    expect(read(`call:f{x:${quote}a}`).error).toMatch(/does not end/);
    expect(read("call:f{x}").error).toMatch(/: is missing/);
    expect(read("call:f{x:1 y:2}").error).toMatch(/\} is missing/);
    expect(read("call:f{} so").error).toMatch(/is missing/);
    expect(read(`call:f{x:${"[".repeat(200)}`).error).toMatch(/too deep/);
    const two = parse(format, `${open}call:a{x:y}${close}${open}call:b{}${close}`).calls;
    expect(two.map((one) => one.error ?? one.name)).toEqual([expect.stringMatching(/no value/), "b"]);
  });
});

describe("glm45", () => {
  const schema = defineToolSchema("f", "", {
    type: "object",
    properties: { n: { type: "integer" }, s: { type: "string" } },
  });

  it("types values by the schema, and keeps them as they are, line breaks and tags too", () => {
    const text = "\n <arg_key>x</tool_call>\n";
    const pairs = `<arg_key>n</arg_key>\n<arg_value>3</arg_value>\n<arg_key>s</arg_key><arg_value>${text}</arg_value>`;
    expect(parse("glm45", `so\n<tool_call>f\n${pairs}\n</tool_call>`, [schema])).toEqual({
      content: "so\n",
      calls: [{ name: "f", arguments: { n: 3, s: text } }],
    });
  });

  it("names the problem, and reads a good call behind it", () => {
    const error = (body: string) => parse("glm45", `<tool_call>${body}`).calls[0]!.error;
    expect(error("")).toMatch(/no name/);
    expect(error('{"name": "f"}</tool_call>')).toMatch(/no name/);
    expect(error("<function=f></function></tool_call>")).toMatch(/no name/);
    expect(error("f<arg_key>a</tool_call>")).toMatch(/<\/arg_key> is missing/);
    expect(error("f<arg_key>a</arg_key></tool_call>")).toMatch(/no <arg_value>/);
    expect(error("f<arg_key>a</arg_key><arg_value>1</tool_call>")).toMatch(/not closed/);
    expect(error("f\n<b></tool_call>")).toMatch(/<\/tool_call> is missing/);
    const two = parse("glm45", "<tool_call>f<arg_key>a</tool_call><tool_call>g</tool_call>").calls;
    expect(two.map((one) => one.error ?? one.name)).toEqual([expect.any(String), "g"]);
  });
});

describe("hy3", () => {
  it("reads calls in one pair of tags or without, and wants a tag behind the name", () => {
    const call = (end: string) => `<tool_call:opensource>f${end}\n</tool_call:opensource>`;
    const good = call("<tool_sep:opensource>");
    const one = { name: "f", arguments: {} };
    expect(parse("hy3", `so<tool_calls:opensource>\n${good}\n${good}\n</tool_calls:opensource>`)).toEqual({
      content: "so",
      calls: [one, one],
    });
    const two = parse("hy3", call("") + good).calls;
    expect(two).toEqual([{ ...one, error: expect.stringMatching(/tool_sep/), text: call("") }, one]);
  });
});

describe("minimax_m2", () => {
  it("reads calls in one pair of tags or without, and keeps values as they are", () => {
    const call = (value: string) => `<invoke name="f">\n<parameter name="x">${value}</parameter>\n</invoke>\n`;
    const text = "\n a </invoke><minimax:tool_call>\n";
    const turn = parse(
      "minimax_m2",
      `so\n<minimax:tool_call>\n${call(text)}${call("2")}${call("3")}</minimax:tool_call> ok`,
    );
    expect(turn.calls.map((one) => one.arguments.x)).toEqual([text, "2", "3"]);
    expect(turn.content.replace(/\s+/g, " ")).toBe("so ok");
    expect(parse("minimax_m2", `${call("1")}ok`).content.trim()).toBe("ok");
    expect(parse("minimax_m2", "<minimax:tool_call>so</minimax:tool_call>").calls[0]!.error).toMatch(/no <invoke name/);
  });
});

describe("minimax_m3", () => {
  const element = (tag: string, inside: string) => `${ns}<${tag}>${inside}${ns}</${tag.split(" ")[0]}>`;
  const call = (inside: string) => element('invoke name="f"', inside);
  const schema = defineToolSchema("f", "", {
    type: "object",
    properties: {
      text: { type: "string" },
      texts: { type: "array", items: { type: "string" } },
      empty: { type: "array" },
      nothing: { type: "object" },
      gaps: { type: "array", items: { type: ["integer", "null"] } },
      pair: { type: "array", prefixItems: [{ type: "integer" }, { type: "boolean" }] },
      either: { anyOf: [{ $ref: "#/$defs/point" }, { type: "array", items: { $ref: "#/$defs/point" } }] },
      named: { type: "object", properties: { item: { type: "number" } } },
      counts: { type: "object", additionalProperties: { type: "integer" } },
    },
    $defs: { point: { type: "object", properties: { x: { type: "number" } } } },
  });
  const read = (inside: string) => parse("minimax_m3", call(inside), [schema]).calls[0]!;

  it("types values of elements by the schema, at every depth", () => {
    const item = (inside: string) => element("item", inside);
    const point = element("x", "-1e-7");
    for (const [inside, value] of [
      [element("text", `\n${element("b", "3")}${ns}</invoke>`), { text: `\n${element("b", "3")}${ns}</invoke>` }],
      [element("texts", item("1") + item("") + item(element("item", "x"))), undefined],
      [element("texts", item("1") + item("")), { texts: ["1", ""] }],
      [element("empty", ""), { empty: [] }],
      [element("nothing", "") + element("text", ""), { nothing: {}, text: "" }],
      [element("gaps", item("1") + item("")), { gaps: [1, null] }],
      [element("pair", item("1") + item("true")), { pair: [1, true] }],
      [element("either", point), { either: { x: -1e-7 } }],
      [element("either", `\n${item(point)} ${item(point)}\n`), { either: [{ x: -1e-7 }, { x: -1e-7 }] }],
      [element("named", item("1")), { named: { item: 1 } }],
      [element("counts", element("a.b", "2")), { counts: { "a.b": 2 } }],
      [element("nothing", '{"a": [1]}'), { nothing: { a: [1] } }],
      [element("other", item("1") + item(element("a", "2"))), { other: ["1", { a: "2" }] }],
      [element("__proto__", "1"), JSON.parse('{"__proto__": "1"}')],
    ] as const) {
      if (value === undefined) expect(read(inside).error, inside).toMatch(/is missing/);
      else expect(read(inside), inside).toEqual({ name: "f", arguments: value });
    }
  });

  it("drops the end of thoughts that a turn without any begins with, and the marks of the list", () => {
    const text = `</mm:think>I look.${ns}<tool_call>\n${call("")}\n${call("")}\n${ns}</tool_call>`;
    const one = { name: "f", arguments: {} };
    expect(parse("minimax_m3", text)).toEqual({
      content: "I look.",
      calls: [one, one],
      message: { content: "I look." },
    });
    const said: string[] = [];
    const splitter = getToolFormat("minimax_m3").withoutCalls.split((_, piece) => said.push(piece));
    for (const char of "</mm:think>a ]< b") splitter.push(char);
    splitter.finish();
    expect(said.join("")).toBe("a ]< b");
  });

  it("names the problem, and reads a good call behind it", () => {
    expect(parse("minimax_m3", `${ns}<invoke name="">${ns}</invoke>`).calls[0]!.error).toMatch(/no name/);
    expect(read(`so${element("text", "")}`).error).toMatch(/<\/invoke> is missing/);
    expect(read(`${ns}<text>so`).error).toMatch(/"text" is not closed/);
    expect(read(`${ns}<either>${point(3)}so`).error).toMatch(/<\/either> is missing/);
    expect(read(`${ns}<x>`.repeat(200)).error).toMatch(/too deep/);
    const two = parse("minimax_m3", `${call(`${ns}<either>${point(1)}`)}${call("")}`, [schema]).calls;
    expect(two.map((one) => one.error ?? one.name)).toEqual([expect.stringMatching(/is missing/), "f"]);
    function point(x: number) {
      return element("x", String(x));
    }
  });
});

describe("deepseek_v32", () => {
  it("types values by their tags, and keeps text that is not JSON", () => {
    const value = (key: string, isText: boolean, text: string) =>
      `<｜DSML｜parameter name="${key}" string="${isText}">${text}</｜DSML｜parameter>\n`;
    const values = value("a", true, "1") + value("b", false, '[1, {"c": null}]') + value("d", false, "tru");
    for (const tag of ["function_calls", "tool_calls"]) {
      const turn = `<｜DSML｜${tag}>\n<｜DSML｜invoke name="f">\n${values}</｜DSML｜invoke>\n</｜DSML｜${tag}>`;
      expect(parse("deepseek_v32", turn)).toEqual({
        content: "",
        calls: [{ name: "f", arguments: { a: "1", b: [1, { c: null }], d: "tru" } }],
      });
    }
  });
});

describe("kimi_k2", () => {
  it("takes the head of a call for its id, and drops the marks of the list", () => {
    const call = (head: string) => `<|tool_call_begin|>${head}<|tool_call_argument_begin|>{}<|tool_call_end|>`;
    const list = `so<|tool_calls_section_begin|>${call("functions.a.b:3")}\n${call("c")}<|tool_calls_section_end|>`;
    expect(parse("kimi_k2", list)).toEqual({
      content: "so",
      calls: [
        { name: "a.b", arguments: {}, id: "functions.a.b:3" },
        { name: "c", arguments: {} },
      ],
    });
    expect(parse("kimi_k2", call("functions.:0")).calls[0]!.error).toMatch(/no name/);
  });
});

describe("kimi_k3", () => {
  const open = (tag: string) => `<|open|>${tag}<|sep|>`;
  const close = (tag: string) => `<|close|>${tag}<|sep|>`;
  const element = (tag: string, inside: string) => open(tag) + inside + close(tag.split(" ")[0]!);
  const call = (inside: string, tool = "f") => element("tools", element(`call tool="${tool}" index="12"`, inside));
  const read = (inside: string) => parse("kimi_k3", call(inside)).calls[0]!;

  it("reads a whole turn: its thoughts and words without the marks around them, and the message for a template", () => {
    const thoughts = element("think", "So.");
    const end = close("message");
    expect(parse("kimi_k3", `${thoughts}${element("response", "I look.")}${call("")}${end}`)).toEqual({
      content: `${thoughts}I look.`,
      calls: [{ name: "f", arguments: {} }],
      message: { content: "I look.", reasoning_content: "So." },
    });
    const { withoutCalls } = getToolFormat("kimi_k3");
    for (const reader of [getToolFormat("kimi_k3"), withoutCalls]) {
      expect(reader.parse(`${thoughts}${element("response", "42")}${end}`).message).toEqual({
        content: "42",
        reasoning_content: "So.",
      });
      const said: [string, string][] = [];
      // Without the opening of the thoughts, which a caller may not have.
      const splitter = reader.split((kind, text) => said.push([kind, text]));
      for (const char of `${close("think")}${element("response", "a < b")}${end}`) splitter.push(char);
      splitter.finish();
      expect(said.map(([kind, text]) => (kind === "text" ? text : "")).join("")).toBe("a < b");
    }
    expect(withoutCalls.parse(call("")).calls).toEqual([]);
  });

  it("types values by their tags, and keeps text that is not JSON", () => {
    const value = (key: string, type: string, text: string) => element(`argument key="${key}" type="${type}"`, text);
    const values = value("a", "string", "1") + value("b", "array", '[1, {"c": null}]') + value("d", "number", "tru");
    expect(read(values)).toEqual({ name: "f", arguments: { a: "1", b: [1, { c: null }], d: "tru" } });
    expect(read(value("&quot;a&amp;amp;", "null", "null"))).toEqual({ name: "f", arguments: { '"a&amp;': null } });
    expect(read(value("a", "integer", "1"))).toEqual({
      name: "f",
      arguments: {},
      error: expect.any(String),
      text: expect.any(String),
    });
  });

  it("reads JSON in place of the arguments", () => {
    const json = (text: string) => read(element('json type="object"', text));
    expect(json('{"a": "<|close|>argument<|sep|>"}')).toEqual({
      name: "f",
      arguments: { a: "<|close|>argument<|sep|>" },
    });
    expect(json("[1]").error).toMatch(/not an object/);
    expect(json("{").error).toMatch(/not an object/);
    expect(
      parse("kimi_k3", `${open('call tool="f" index="1"')}${open('json type="object"')}{}`).calls[0]!.error,
    ).toMatch(/the JSON is not closed/);
  });
});

describe("solar_open", () => {
  it("reads a whole turn, with the ids of calls, and names the problem", () => {
    const call = "<|tool_call:begin|>Abc<|tool_call:name|>a<|tool_call:args|>{}<|tool_call:end|>";
    const thoughts = "<|think|>So.<|end|>";
    const list = `<|tool_calls|>${call}${call.replace("Abc", "")}`;
    expect(parse("solar_open", `${thoughts}<|begin|>assistant${list}`)).toEqual({
      content: thoughts,
      calls: [
        { name: "a", arguments: {}, id: "Abc" },
        { name: "a", arguments: {} },
      ],
      message: { content: "", reasoning_content: "So." },
    });
    expect(parse("solar_open", `${thoughts}<|begin|>assistant<|content|>42`).message).toEqual({
      content: "42",
      reasoning_content: "So.",
    });
    const nameless = parse("solar_open", "<|tool_call:begin|>a<|tool_call:args|>{}<|tool_call:end|>").calls[0]!;
    expect(nameless.error).toMatch(/no name/);
  });
});

describe("granite", () => {
  it("reads lists and calls of their own, and names the problem", () => {
    const a = '{"name": "a", "arguments": {"x": 1}}';
    const read = { name: "a", arguments: { x: 1 } };
    expect(parse("granite", `so<|tool_call|>[${a}, ${a}] ok`)).toEqual({ content: "so ok", calls: [read, read] });
    expect(parse("granite", `<|tool_call|>${a}<|/tool_call|><|tool_call|> [${a}]<|/tool_call|>`)).toEqual({
      content: "",
      calls: [read, read],
    });
    const error = (text: string) => parse("granite", `<|tool_call|>${text}`).calls[0]!.error;
    expect(error("so")).toMatch(/no call/);
    expect(error("[]")).toMatch(/no call/);
    expect(error("[1]")).toMatch(/not an object/);
  });
});

describe("apriel", () => {
  it("reads lists in either tags, and a call on each line", () => {
    const call = '{"name": "a", "arguments": {"x": 1}}';
    const one = { name: "a", arguments: { x: 1 } };
    for (const inside of [`[${call}, ${call}]`, `\n${call}\n${call}\n`])
      for (const tag of ["tool_calls", "TOOLCALL"])
        expect(parse("apriel", `so <${tag}>${inside}</${tag}> ok`)).toEqual({ content: "so  ok", calls: [one, one] });
    const broken = parse("apriel", `<tool_calls>\n${call}\n{"name"</tool_calls><tool_calls>${call}</tool_calls>`).calls;
    expect(broken).toEqual([expect.objectContaining({ error: expect.any(String) }), one]);
    expect(parse("apriel", "<tool_calls>[]</tool_calls>").calls[0]!.error).toMatch(/no call/);
  });
});

describe("cohere and apertus", () => {
  it("cohere reads lists with ids, and words without the marks around them", () => {
    const call = (id: string) => `{"tool_call_id": "${id}", "tool_name": "a", "parameters": {"x": 1}}`;
    const thoughts = "<|START_THINKING|>So.<|END_THINKING|>";
    const list = `<|START_ACTION|>[\n    ${call("0")},\n    ${call("1")}\n]<|END_ACTION|>`;
    expect(parse("cohere", thoughts + list)).toEqual({
      content: thoughts,
      calls: ["0", "1"].map((id) => ({ name: "a", arguments: { x: 1 }, id })),
      message: { content: "", reasoning_content: "So." },
    });
    for (const part of ["RESPONSE", "TEXT"])
      expect(parse("cohere", `${thoughts}<|START_${part}|>42<|END_${part}|>`).message).toEqual({
        content: "42",
        reasoning_content: "So.",
      });
  });

  it("names the problem", () => {
    const errorOf = (format: string, text: string) => parse(format, text).calls[0]!.error;
    expect(errorOf("cohere", '<|START_ACTION|>[{"tool_name": 1}]')).toMatch(/no name/);
    expect(errorOf("cohere", "<|START_ACTION|>[1]")).toMatch(/not an object/);
    expect(errorOf("cohere", '<|START_ACTION|>[{"tool_name": "a", "parameters": [1]}]')).toMatch(/not an object/);
    expect(errorOf("apertus", "<|tools_prefix|>[1]")).toMatch(/no name/);
    expect(errorOf("apertus", '<|tools_prefix|>[{"a": {}, "b": {}}]')).toMatch(/no name/);
    expect(errorOf("apertus", '<|tools_prefix|>[{"a": 1}]')).toMatch(/not an object/);
    expect(errorOf("apertus", "<|tools_prefix|>[]")).toMatch(/no call/);
  });
});

describe("qwen3_coder, as Seed-OSS writes it", () => {
  it("reads the outer tag of either", () => {
    const body = "<function=f>\n<parameter=x>1</parameter>\n</function>";
    expect(parse("seed_oss", `so\n<seed:tool_call>\n${body}\n</seed:tool_call>`)).toEqual({
      content: "so\n",
      calls: [{ name: "f", arguments: { x: "1" } }],
    });
    const two = parse("seed_oss", `<tool_call>${body}${body}</tool_call>`);
    expect(two).toEqual({ content: "", calls: [1, 2].map(() => ({ name: "f", arguments: { x: "1" } })) });
  });
});

/** MiniMax-M3's mark before each tag. */
const ns = "]<]minimax[>[";

/** DeepSeek's marks, by their words. */
const mark = (words: string) => `<｜tool▁${words.replaceAll(" ", "▁")}｜>`;

describe.each<[string, string, (name: string, json: string) => string]>([
  ["mistral", "a list", (name, json) => `[TOOL_CALLS][{"name": ${JSON.stringify(name)}, "arguments": ${json}}]`],
  ["mistral", "a name", (name, json) => `[TOOL_CALLS]${name}[ARGS]${json}`],
  ["mistral", "a name without [ARGS]", (name, json) => `[TOOL_CALLS]${name}${json}`],
  [
    "gpt_oss",
    "channel first",
    (n, j) => `<|channel|>commentary to=functions.${n} <|constrain|>json<|message|>${j}<|call|>`,
  ],
  [
    "gpt_oss",
    "recipient first",
    (n, j) => `<|start|>assistant to=functions.${n}<|channel|>commentary json<|message|>${j}<|call|>`,
  ],
  ["deepseek_v3", "V3.1", (name, json) => `${mark("call begin")}${name}${mark("sep")}${json}${mark("call end")}`],
  [
    "deepseek_v3",
    "V3",
    (name, json) =>
      `${mark("call begin")}function${mark("sep")}${name}\n\`\`\`json\n${json}\n\`\`\`${mark("call end")}`,
  ],
  ["kimi_k2", "calls", (n, j) => `<|tool_call_begin|>${n}<|tool_call_argument_begin|>${j}<|tool_call_end|>`],
  ["solar_open", "calls", (n, j) => `<|tool_call:begin|><|tool_call:name|>${n}<|tool_call:args|>${j}<|tool_call:end|>`],
  ["granite", "a list", (name, json) => `<|tool_call|>[{"name": "${name}", "arguments": ${json}}]`],
  ["granite", "a call", (name, json) => `<|tool_call|>{"name": "${name}", "arguments": ${json}}<|/tool_call|>`],
  ["apriel", "a list", (name, json) => `<TOOLCALL>[{"name": "${name}", "arguments": ${json}}]</TOOLCALL>`],
  ["apertus", "a list", (name, json) => `<|tools_prefix|>[{"${name}": ${json}}]<|tools_suffix|>`],
  [
    "cohere",
    "a list",
    (name, json) => `<|START_ACTION|>[{"tool_name": "${name}", "parameters": ${json}}]<|END_ACTION|>`,
  ],
  [
    "pythonic",
    "JSON",
    (name, json) => `<|tool_call_start|>[{"name": "${name}", "arguments": ${json}}]<|tool_call_end|>`,
  ],
])("%s, %s", (format, _, write) => {
  it("reads back several calls with any JSON", () => {
    const name = fc.stringMatching(/^[a-z_][\w.-]{0,20}$/);
    fc.assert(
      fc.property(fc.array(fc.tuple(name, argumentsJson), { minLength: 1, maxLength: 4 }), (calls) => {
        const turn = parse(format, calls.map(([called, args]) => write(called, JSON.stringify(args))).join("\n"));
        const expected = calls.map(([called, args]) => ({ name: called, arguments: JSON.parse(JSON.stringify(args)) }));
        expect(turn.calls).toEqual(expected);
        expect(turn.content.trim()).toBe("");
      }),
    );
  });

  it("makes malformed calls errors that the model can read, and reads a good call after them", () => {
    const broken = ['{"x": 1', '{"x": tru}', "{'x': 1}", `{"x": ${"[".repeat(5000)}${"]".repeat(5000)}}`];
    for (const json of broken) {
      const { calls } = parse(format, `${write("a", json)}\n${write("b", "{}")}`);
      expect(
        calls.map((call) => call.error ?? call.name),
        json.slice(0, 20),
      ).toEqual([expect.stringMatching(/^error: invalid call \(.+\)$/), "b"]);
      expect(calls[0]!.arguments).toEqual({});
    }
  });
});

describe("mistral", () => {
  it("keeps text around the calls and the ids that the model wrote", () => {
    expect(parse("mistral", 'I look. [TOOL_CALLS] [{"name": "a", "arguments": {}, "id": "Abc123xyz"}]')).toEqual({
      content: "I look. ",
      calls: [{ name: "a", arguments: {}, id: "Abc123xyz" }],
    });
    expect(parse("mistral", "[TOOL_CALLS]a[CALL_ID]Abc123xyz[ARGS]{}[TOOL_CALLS]b[ARGS]{}").calls).toEqual([
      { name: "a", arguments: {}, id: "Abc123xyz" },
      { name: "b", arguments: {} },
    ]);
  });

  it("names the problem", () => {
    const error = (text: string) => parse("mistral", text).calls.map((call) => call.error)[0];
    expect(error("[TOOL_CALLS]")).toMatch(/no name and arguments/);
    expect(error("[TOOL_CALLS][]")).toMatch(/no call/);
    expect(error("[TOOL_CALLS][1]")).toMatch(/not an object/);
    expect(error("[TOOL_CALLS]a[ARGS]")).toMatch(/no name and arguments/);
  });
});

describe("gpt_oss", () => {
  const call = '<|start|>assistant<|channel|>commentary to=functions.a <|constrain|>json<|message|>{"x": 1}';

  it("reads a whole turn: its thoughts, its calls, and the message for a template", () => {
    const thought = "<|channel|>analysis<|message|>I look it up.<|end|>";
    expect(parse("gpt_oss", thought + call)).toEqual({
      content: thought,
      calls: [{ name: "a", arguments: { x: 1 } }],
      message: { content: "", reasoning_content: "I look it up." },
    });
    const final = `${thought}<|start|>assistant<|channel|>final<|message|>42`;
    expect(parse("gpt_oss", final)).toEqual({
      content: final,
      calls: [],
      message: { content: "42", reasoning_content: "I look it up." },
    });
    expect(parse("gpt_oss", "plain")).toEqual({ content: "plain", calls: [], message: { content: "plain" } });
  });

  it("a call on the channel of thoughts is not run; other recipients are not tools", () => {
    const { calls } = parse("gpt_oss", "<|channel|>analysis to=functions.a code<|message|>{}");
    expect(calls[0]!.error).toMatch(/calls go to the channel commentary/);
    expect(parse("gpt_oss", "<|channel|>analysis to=python code<|message|>print(1)").calls).toEqual([]);
    expect(parse("gpt_oss", '<|channel|>analysis<|message|>to=functions.a {"x": 1}').calls).toEqual([]);
  });

  it("names the problem", () => {
    const error = (body: string) =>
      parse("gpt_oss", `<|channel|>commentary to=functions.a<|message|>${body}`).calls[0]!;
    expect(error("[1]").error).toMatch(/not an object/);
    expect(error('{"x": 1').error).toMatch(/does not end/);
    expect(error("{} more").error).toMatch(/text behind the JSON/);
    expect(error(" ")).toEqual({ name: "a", arguments: {} });
  });
});

describe("deepseek_v3", () => {
  it("drops the marks of the list, keeps the text before it, and names the problem", () => {
    const call = `${mark("call begin")}a${mark("sep")}{}${mark("call end")}`;
    const list = `Let me see.${mark("calls begin")}${call}\n${call}${mark("calls end")}`;
    expect(parse("deepseek_v3", list)).toEqual({
      content: "Let me see.",
      calls: [
        { name: "a", arguments: {} },
        { name: "a", arguments: {} },
      ],
    });
    const error = (text: string) => parse("deepseek_v3", mark("call begin") + text).calls[0]!.error;
    expect(error("")).toMatch(/no name/);
    expect(error(`a${mark("sep")}`)).toMatch(/no arguments/);
    expect(error(`a${mark("sep")}{}`)).toMatch(/call▁end｜> is missing/);
    expect(error(`${mark("sep")}{}${mark("call end")}`)).toMatch(/no name/);
  });
});

describe("thinking", () => {
  /** One call in each format. */
  const calls: Record<(typeof formats)[number], string> = {
    apertus: '<|tools_prefix|>[{"a": {}}]<|tools_suffix|>',
    apriel: '<tool_calls>[{"name": "a", "arguments": {}}]</tool_calls>',
    "chatml-json": '{"name": "a", "arguments": {}}',
    cohere: '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "a", "parameters": {}}]<|END_ACTION|>',
    deepseek_v3: `${mark("call begin")}a${mark("sep")}{}${mark("call end")}`,
    gpt_oss: "<|start|>assistant<|channel|>commentary to=functions.a<|message|>{}<|call|>",
    deepseek_v32: '<｜DSML｜invoke name="a"></｜DSML｜invoke>',
    functiongemma: "<start_function_call>call:a{}<end_function_call>",
    gemma4: "<|tool_call>call:a{}<tool_call|>",
    glm45: "<tool_call>a</tool_call>",
    granite: '<|tool_call|>[{"name": "a", "arguments": {}}]',
    hermes: '<tool_call>{"name": "a", "arguments": {}}</tool_call>',
    hy3: "<tool_call:opensource>a<tool_sep:opensource></tool_call:opensource>",
    kimi_k2: "<|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    kimi_k3: '<|open|>tools<|sep|><|open|>call tool="a" index="1"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
    llama3_json: '{"name": "a", "parameters": {}}',
    minimax_m2: '<minimax:tool_call><invoke name="a"></invoke></minimax:tool_call>',
    minimax_m3: `${ns}<tool_call>\n${ns}<invoke name="a">${ns}</invoke>\n${ns}</tool_call>`,
    mistral: "[TOOL_CALLS]a[ARGS]{}",
    python: "\n```python\nx\n```\n",
    pythonic: "\n[a(x=1)]\n",
    qwen3_coder: "<tool_call><function=a></function></tool_call>",
    solar_open: "<|tool_call:begin|>7<|tool_call:name|>a<|tool_call:args|>{}<|tool_call:end|>",
  };

  it.each(formats.filter((format) => format !== "gpt_oss"))(
    "%s: a call quoted inside thinking is not a call",
    (format) => {
      const call = calls[format];
      for (const { open, close } of thinkingTags) {
        for (const [text, count] of [
          [`${open}maybe ${call}${close}`, 0],
          [`${open}maybe ${call}`, 0],
          [`${open}\n${call}\n${close}\n\nanswer`, 0],
          [`first ${open}${call}${close} then ${open}${call}${call}`, 0],
          [`${open}${call}${close}\n${call}`, 1],
          [`${call}\n${open}${call}${close}\n${call}`, 2],
          [`${open}${close}${open}${call}${close}`, 0],
          [`${open}${close}${call}`, 1],
        ] as const) {
          const turn = parse(format, text);
          expect(turn.calls, text).toHaveLength(count);
          for (const found of turn.calls) expect(found.error, text).toBeUndefined();
          if (count === 0) expect(turn.content).toBe(text);
        }
      }
    },
  );

  it("gpt_oss: a call quoted in the analysis channel is not a call", () => {
    const quoted = `<|channel|>analysis<|message|>I could write {"name": "a"} to=functions.a`;
    for (const text of [quoted, `${quoted}<|end|><|start|>assistant<|channel|>final<|message|>no`])
      expect(parse("gpt_oss", text)).toMatchObject({ content: text, calls: [] });
    expect(parse("gpt_oss", `${quoted}<|end|>${calls.gpt_oss}`).calls).toEqual([{ name: "a", arguments: {} }]);
  });

  it("a tag inside of a call's arguments is text", () => {
    const args = { text: "<think>[THINK]<seed:think>" };
    const json = JSON.stringify(args);
    const written: Partial<typeof calls> = {
      "chatml-json": `{"name": "a", "arguments": ${json}}`,
      deepseek_v3: calls.deepseek_v3.replace("{}", json),
      hermes: `<tool_call>{"name": "a", "arguments": ${json}}</tool_call>`,
      llama3_json: `{"name": "a", "parameters": ${json}}`,
      mistral: `[TOOL_CALLS]a[ARGS]${json}`,
      qwen3_coder: `<tool_call><function=a><parameter=text>\n${args.text}\n</parameter></function></tool_call>`,
      glm45: `<tool_call>a<arg_key>text</arg_key><arg_value>${args.text}</arg_value></tool_call>`,
      pythonic: `<|tool_call_start|>[a(text='${args.text}')]<|tool_call_end|>`,
      gemma4: `<|tool_call>call:a{text:<|"|>${args.text}<|"|>}<tool_call|>`,
    };
    for (const [format, text] of Object.entries(written))
      expect(parse(format, text), format).toEqual({ content: "", calls: [{ name: "a", arguments: args }] });
    const code = 'x = "<think>"';
    expect(parse("python", `\`\`\`python\n${code}\n\`\`\``).calls[0]!.arguments).toEqual({ code });
  });

  it("a user's parser is not shown the thinking that a turn begins with, and content keeps it", () => {
    registerToolParser("mine", (text) => ({
      content: text.replace("CALL", ""),
      calls: [{ name: text, arguments: {} }],
    }));
    expect(parse("mine", "<think>CALL</think>\nCALL x")).toEqual({
      content: "<think>CALL</think>\n x",
      calls: [{ name: "\nCALL x", arguments: {} }],
    });
    expect(parse("mine", "\n<think>CALL").calls[0]!.name).toBe("");
  });
});

it("keeps the model's text of a call that cannot be run, marks included", () => {
  const broken: Record<(typeof formats)[number], string> = {
    apertus: '<|tools_prefix|>[{"a": {"x": tru}}]<|tools_suffix|>',
    apriel: '<tool_calls>[{"name": "a", "arguments": {"x": tru}}]</tool_calls>',
    "chatml-json": '{"name": "a", "arguments": {"x": tru}}',
    cohere: '<|START_ACTION|>[{"tool_name": "a", "parameters": {"x": tru}}]<|END_ACTION|>',
    deepseek_v3: `${mark("call begin")}a${mark("sep")}{"x": tru}${mark("call end")}`,
    gpt_oss: '<|start|>assistant<|channel|>commentary to=functions.a<|message|>{"x": tru}<|call|>',
    deepseek_v32: '<｜DSML｜invoke name="a"><｜DSML｜parameter name="x" string="true">',
    functiongemma: "<start_function_call>call:a{x:tru}<end_function_call>",
    gemma4: "<|tool_call>call:a{x:tru}<tool_call|>",
    glm45: "<tool_call>a<arg_key>x</arg_key></tool_call>",
    granite: '<|tool_call|>{"name": "a", "arguments": {"x": tru}}<|/tool_call|>',
    hermes: '<tool_call>{"name": "a", "arguments": {"x": tru}}</tool_call>',
    hy3: "<tool_call:opensource>a</tool_call:opensource>",
    kimi_k2: '<|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>{"x": tru}<|tool_call_end|>',
    kimi_k3: '<|open|>tools<|sep|><|open|>call tool="a" index="1"<|sep|><|close|>tools<|sep|>',
    llama3_json: '{"name": "a", "parameters": {"x": tru}}',
    minimax_m2: '<minimax:tool_call><invoke name="a"></minimax:tool_call>',
    minimax_m3: `${ns}<invoke name="a">${ns}<x>${ns}</invoke>`,
    mistral: '[TOOL_CALLS]a[ARGS]{"x": tru}',
    python: "```python\nx",
    pythonic: "<|tool_call_start|>[a(x=tru)]<|tool_call_end|>",
    qwen3_coder: "<tool_call><function=a></tool_call>",
    solar_open: '<|tool_call:begin|>7<|tool_call:name|>a<|tool_call:args|>{"x": tru}<|tool_call:end|>',
  };
  for (const format of formats) {
    const before = format === "gpt_oss" ? "<|channel|>analysis<|message|>so<|end|>" : "so\n";
    const [call] = parse(format, before + broken[format]).calls;
    expect(call, format).toMatchObject({ error: expect.any(String), text: broken[format] });
  }
});

describe.each(toolFormats.names())("%s under random text", (format) => {
  const schema = defineToolSchema("name", "", { type: "object", properties: { x: { type: "object" } } });
  const pieces = [
    ..."{}[]\"':,\\x1; \n<>`",
    "<tool_call>",
    "</tool_call>",
    "<function=name>",
    "</function>",
    "<parameter=x>",
    "</parameter>",
    "```python\n",
    "\n```",
    '{"name":"name","arguments":{',
    '"tool_calls":[',
    "<think>",
    "</think>",
    "[THINK]",
    "[TOOL_CALLS]",
    "[TOOL_CALLS]name[ARGS]{",
    "[CALL_ID]",
    "<|channel|>commentary to=functions.name<|message|>",
    "<|start|>",
    "<|end|>",
    `${mark("call begin")}name${mark("sep")}{`,
    mark("call begin"),
    mark("call end"),
    "<|python_tag|>",
    "<|channel>thought",
    "<seed:think>",
    "<|tool_call_start|>[name(x=",
    "<|tool_call_end|>",
    "\n[name(x='",
    "<start_function_call>call:name{x:<escape>",
    "<end_function_call>",
    "<escape>",
    '<|tool_call>call:name{x:<|"|>',
    "<tool_call|>",
    "<tool_call>name<arg_key>x</arg_key><arg_value>",
    "</arg_value>",
    "<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{",
    "<|tool_call_end|>",
    '<minimax:tool_call><invoke name="name"><parameter name="x">',
    "</invoke>",
    '<｜DSML｜invoke name="name"><｜DSML｜parameter name="x" string="true">',
    "</｜DSML｜parameter>",
    "<|tool_call|>",
    '<|open|>call tool="name" index="1"<|sep|><|open|>argument key="x" type="object"<|sep|>{',
    "<|open|>tools<|sep|>",
    "<|open|>think<|sep|>",
    "<|open|>response<|sep|>",
    "<|close|>argument<|sep|>",
    "<|close|>call<|sep|>",
    `${ns}<invoke name="name">${ns}<x>${ns}<y>`,
    `${ns}<item>`,
    `${ns}</item>`,
    `${ns}</x>`,
    ns,
    "<mm:think>",
    '<|START_ACTION|>[{"tool_name": "name", "parameters": {',
    "<tool_call:opensource>name<tool_sep:opensource><arg_key:opensource>x</arg_key:opensource><arg_value:opensource>",
    "</arg_value:opensource>",
    "<|tool_call:begin|>7<|tool_call:name|>name<|tool_call:args|>{",
    "<|tool_call:end|>",
    '<tool_calls>[{"name": "name", "arguments": {',
    "</tool_calls>",
    "<|think|>",
    "<|content|>",
    "<|END_ACTION|>",
    "<|START_RESPONSE|>",
    "<|START_THINKING|>",
    '<|tools_prefix|>[{"name": {',
    "<|tools_suffix|>",
    "__proto__",
    "\ud800",
  ];
  const formatMarks = [
    "[TOOL_CALLS]",
    "[TOOL_CALLS]a",
    "<|start|>to=functions.a<|channel|>commentary<|message|>",
    mark("call begin"),
    "<|tool_call_start|>[f(x=",
    "\n[f(x=",
    "<start_function_call>call:f{x:",
    '<|tool_call>call:f{x:<|"|>',
    "<tool_call>f<arg_key>",
    '<invoke name="f"><parameter name="',
    "<|tool_call_begin|>f<|tool_call_argument_begin|>",
    "<|tool_call|>",
    '<|open|>call tool="a" index="1"<|sep|><|open|>argument key="',
    `${ns}<invoke name="f">${ns}<x>${ns}<`,
    "<|START_ACTION|>",
    "<|tools_prefix|>",
    '<TOOLCALL>{"name": "f"}',
  ];
  const text = fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string()), { maxLength: 80 }).map((a) => a.join(""));

  it("never throws, and answers calls that are complete", () => {
    fc.assert(
      fc.property(text, (sample) => {
        const turn = parse(format, sample, [schema]);
        expect(typeof turn.content).toBe("string");
        for (const call of turn.calls) {
          expect(typeof call.name).toBe("string");
          expect(call.error !== undefined || call.name !== "").toBe(true);
          expect(Object.prototype.toString.call(call.arguments)).toBe("[object Object]");
        }
      }),
      { numRuns: amount(200, 500) },
    );
  });

  it("takes linear time: a text eight times as long takes about eight times as long", () => {
    const tails = ["", '"', "\\", "</tool_call>", "</parameter>", "```", "}"];
    const opened = ["", "<tool_call>", "<function=name>", "<parameter=x>", "\n```python\n", ...formatMarks].flatMap(
      (tag) => ["{", "[", '{"', '{"name":', '{"name":{', '[{"name":', '"', '\\"', "x"].map((body) => [tag, body]),
    );
    const random = fc.sample(fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 6 }), {
      numRuns: 100,
      seed: 7,
    });
    const cases = someOf([...pieces.map((piece) => [piece]), ...opened, ...random]).map((unit, i) => ({
      unit: unit.join(""),
      tail: tails[i % tails.length]!,
    }));
    // CPU time in ms: other work on the machine disturbs the clock far more.
    const time = (unit: string, tail: string, size: number) => {
      const sample = unit.repeat(Math.ceil(size / unit.length)) + tail;
      const started = process.cpuUsage();
      parse(format, sample, [schema]);
      const { user, system } = process.cpuUsage(started);
      return (user + system) / 1000;
    };
    for (const { unit, tail } of cases) time(unit, tail, 4000);
    const slow = cases.filter(({ unit, tail }) => {
      // Quadratic time would give a ratio of 64.
      for (let attempt = 0; attempt < 6; attempt++) {
        const small = Math.min(time(unit, tail, 8000), time(unit, tail, 8000), time(unit, tail, 8000));
        // A collection of garbage counts too, and may come in either.
        const large = Math.min(time(unit, tail, 64_000), time(unit, tail, 64_000));
        if (large < 24 * Math.max(small, 0.5)) return false;
      }
      return true;
    });
    expect(slow).toEqual([]);
  });
});
