import type { JsonSchema } from "@cria/core";
import { describe, expect, it } from "vitest";
import { defineToolSchema } from "../schema.js";
import { matchesGrammar } from "../testing/match-grammar.js";
import { toolCallGrammar } from "./tool-call-grammar.js";

const write = (format: string, properties: JsonSchema, more: JsonSchema = {}) =>
  toolCallGrammar(format, [defineToolSchema("f", "", { type: "object", properties, ...more })])!;

it("qwen3_coder: a bare text is anything without the tag that ends it", () => {
  const grammar = write("qwen3_coder", { text: { type: "string" } }, { required: ["text"] });
  const allows = (text: string) =>
    matchesGrammar(
      grammar,
      `<tool_call>\n<function=f>\n<parameter=text>\n${text}\n</parameter>\n</function>\n</tool_call>`,
    );
  for (const text of [
    "",
    "a",
    "</parameter",
    "</div>",
    "<</paramete r>",
    "if (a < b) {\n}\n",
    "</parameters>",
    "é</p</parameter",
  ]) {
    expect(allows(text), text).toBe(true);
  }
  for (const text of [
    "</parameter>",
    "a</parameter>b",
    "<</parameter>",
    "</para</parameter>",
    "</parameter</parameter>",
    "\r",
  ]) {
    expect(allows(text), text).toBe(false);
  }
});

const many = <T>(count: number, each: T): T[] => Array.from({ length: count }, () => each);
const referring = { anyOf: many(20, { $ref: "#/$defs/a" }) };
it.each<[string, JsonSchema, JsonSchema]>([
  ["a long list of types", { p: { type: many(200_000, "null") } }, {}],
  ["many references to a long text", { p: referring }, { enum: ["x".repeat(100_000)] }],
  ["many references to a list of types", { p: referring }, { type: many(5000, "null") }],
  [
    "many types of parameters with long names",
    Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`${"k".repeat(190)}${i}`, referring])),
    { type: "integer" },
  ],
])("counts as work: %s", (_, properties, a) => {
  expect(() => write("qwen3_coder", properties, { $defs: { a } })).toThrow(
    expect.objectContaining({ code: "data/unsupported-schema", subject: "JSON Schema" }),
  );
});

it.each<[JsonSchema, boolean]>([
  [{ required: ["a"], minProperties: 1 }, true],
  [{ minProperties: 1 }, false],
  [{ maxProperties: 2 }, true],
  [{ maxProperties: 1 }, false],
])("parameters by name: refuses numbers of properties that it would have to count: %j", (more, isWritten) => {
  const made = () => write("qwen3_coder", { a: { type: "integer" }, b: { type: "integer" } }, more);
  if (isWritten) expect(made()).toContain("root ::= ");
  else expect(made).toThrow(expect.objectContaining({ code: "data/unsupported-schema" }));
});

it("python: null where the schema says more than that the tool takes code", () => {
  const code = { code: { type: "string", description: "the code" } };
  for (const more of [
    { required: ["code"], additionalProperties: false },
    { minProperties: 1, maxProperties: 1 },
  ])
    expect(write("python", code, more), JSON.stringify(more)).toContain("root ::= ");
  for (const [properties, more] of [
    [{ code: { type: "string", pattern: "^x" } }, {}],
    [code, { required: ["code", "other"] }],
    [code, { propertyNames: { pattern: "^(a+)+$" } }],
    [code, { allOf: [{}] }],
    [code, { minProperties: 2 }],
    [code, { maxProperties: 0 }],
  ] as const)
    expect(write("python", properties, more), JSON.stringify(more)).toBeNull();
});

describe("minimax_m3", () => {
  const ns = "]<]minimax[>[";
  const element = (key: string, inside: string) => `${ns}<${key}>${inside}${ns}</${key}>`;
  const item = (inside: string) => element("item", inside);
  const call = (inside: string) => `${ns}<tool_call>\n${ns}<invoke name="f">${inside}${ns}</invoke>\n${ns}</tool_call>`;

  it("a bare text is anything without the mark before tags", () => {
    const grammar = write("minimax_m3", { a: { type: "string" } });
    for (const text of ["", "]", "]<", "]<]<]minimax[>", "]]<]", "a < b </a>", "]<]minimax[<]minimax"])
      expect(matchesGrammar(grammar, call(element("a", text))), text).toBe(true);
    for (const text of [ns, `a${ns}b`, `]<${ns}`, `]<]mini${ns}`, "\r"])
      expect(matchesGrammar(grammar, call(element("a", text))), text).toBe(false);
  });

  it("writes objects and lists as elements, with the limits of the schema", () => {
    const point = { type: "object", properties: { x: { type: "integer" }, y: { type: "number" } }, required: ["x"] };
    const grammar = write("minimax_m3", {
      points: { type: "array", items: point, minItems: 1, maxItems: 2 },
      either: { anyOf: [{ type: "integer" }, point] },
      any: { type: "array" },
    });
    for (const inside of [
      "",
      element("points", item(element("x", "1"))),
      element("points", item(element("x", "1")) + item(element("x", "1") + element("y", "-2.5"))),
      element("either", "3"),
      element("either", element("x", "3")) + element("any", item("a") + item("")),
    ])
      expect(matchesGrammar(grammar, call(inside)), inside).toBe(true);
    for (const inside of [
      element("points", ""),
      element("points", item(element("x", "1")).repeat(3)),
      element("points", item(element("y", "1"))),
      element("points", item(element("x", "a"))),
      element("points", element("x", "1")),
      element("either", "a"),
      element("other", "1"),
    ])
      expect(matchesGrammar(grammar, call(inside)), inside).toBe(false);
  });

  it("writes objects that contain themselves", () => {
    const node = { type: "object", properties: { next: { $ref: "#/$defs/node" }, list: { $ref: "#/$defs/list" } } };
    const list = { type: "array", items: { $ref: "#/$defs/list" } };
    const grammar = write("minimax_m3", { a: { $ref: "#/$defs/node" } }, { $defs: { node, list } });
    const inner = element("next", element("next", "") + element("list", element("item", "")));
    expect(matchesGrammar(grammar, call(element("a", inner)))).toBe(true);
    expect(matchesGrammar(grammar, call(element("a", element("other", ""))))).toBe(false);
  });

  it("writes values without a schema as JSON, and refuses a schema that no grammar can express", () => {
    const grammar = write("minimax_m3", {
      a: { type: "object" },
      b: { type: "array", prefixItems: [{ type: "null" }] },
    });
    expect(matchesGrammar(grammar, call(element("a", '{"k": [1]}') + element("b", "[null]")))).toBe(true);
    const odd = write("minimax_m3", { a: { type: "object", properties: { "a<b": { type: "null" } } } });
    expect(matchesGrammar(odd, call(element("a", String.raw`{"a\u003cb": null}`)))).toBe(true);
    for (const [property, more] of [
      [{ type: "object", properties: {}, patternProperties: {} }, {}],
      [{ type: "array", uniqueItems: true }, {}],
      [{ type: "array", minItems: 2, maxItems: 1 }, {}],
    ] as const)
      expect(() => write("minimax_m3", { a: property }, more), JSON.stringify(property)).toThrow(
        expect.objectContaining({ code: "data/unsupported-schema" }),
      );
  });
});
