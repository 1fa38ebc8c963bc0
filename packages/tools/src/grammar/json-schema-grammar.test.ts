import { DataError, type JsonSchema } from "@cria/core";
import { describe, expect, it } from "vitest";
import { jsonSchemaToGrammar } from "./json-schema-grammar.js";

describe("jsonSchemaToGrammar", () => {
  it("writes an object's properties in order, required and not", () => {
    const grammar = jsonSchemaToGrammar({
      type: "object",
      properties: { a: { type: "boolean" }, b: { const: 1 } },
      required: ["b"],
    });
    expect(grammar).toContain("root ::= object\n");
    expect(grammar).toContain('boolean ::= "true" | "false"\n');
    expect(grammar).toContain('"\\"b\\"" ":" space "1"');
  });

  it("shares rules, and lets a schema contain itself", () => {
    const grammar = jsonSchemaToGrammar({
      $defs: {
        tree: { type: "object", properties: { left: { $ref: "#/$defs/tree" }, right: { $ref: "#/$defs/tree" } } },
      },
      $ref: "#/$defs/tree",
    });
    expect(grammar.match(/^tree ::= /gm)).toHaveLength(1);
    expect(grammar.split("\n").length).toBeLessThan(10);
  });

  const refused: [string, JsonSchema | boolean, string, string?][] = [
    ["nothing", false, "#", "false"],
    ["not", { type: "object", properties: { a: { not: { type: "string" } } } }, "#/properties/a/not"],
    ["if", { type: "object", if: {}, else: false }, "#/if"],
    ["patternProperties", { type: "object", patternProperties: { "^a": {} } }, "#/patternProperties"],
    ["uniqueItems", { type: "array", uniqueItems: true }, "#/uniqueItems"],
    ["multipleOf", { type: "integer", multipleOf: 3 }, "#/multipleOf"],
    ["minProperties", { type: "object", minProperties: 1 }, "#/minProperties"],
    ["maxProperties", { type: "object", additionalProperties: true, maxProperties: 1 }, "#/maxProperties"],
    ["look-ahead", { type: "string", pattern: "^(?!a)b$" }, "#/pattern", "^(?!a)b$"],
    ["a back reference", { type: "string", pattern: "(a)\\1" }, "#/pattern", "(a)\\1"],
    ["a property class", { type: "string", pattern: "\\p{L}" }, "#/pattern", "\\p{L}"],
    ["a pattern and a length", { type: "string", pattern: "a", minLength: 2 }, "#/pattern", "both"],
    ["backward lengths", { type: "string", minLength: 3, maxLength: 2 }, "#", "3 and 2"],
    [
      "no number between",
      { type: "number", minimum: 0.2, maximum: 0.7 },
      "#",
      '{"least":0.2,"most":0.7,"exclusiveLeast":false,"exclusiveMost":false}',
    ],
    [
      "no integer between",
      { type: "integer", minimum: 3, maximum: 2 },
      "#",
      '{"least":3,"most":2,"exclusiveLeast":false,"exclusiveMost":false}',
    ],
    ["bounds of draft 4", { type: "number", exclusiveMinimum: true, minimum: 0 }, "#/exclusiveMinimum", "true"],
    ["an unknown type", { type: "text" }, "#/type", '"text"'],
    ["types that exclude each other", { allOf: [{ type: "string" }, { type: "number" }] }, "#/type", "none"],
    ["required but forbidden", { type: "object", required: ["a"], additionalProperties: false }, "#/required", "a"],
    ["a tuple that is too short", { type: "array", prefixItems: [{}], items: false, minItems: 2 }, "#", "1"],
    ["a reference elsewhere", { $ref: "https://example.com/x" }, "#/$ref", "https://example.com/x"],
    ["a reference that is no text of an address", { $ref: "#/%" }, "#/$ref", "#/%"],
    ["parts of allOf that are no lists", { allOf: [{ allOf: [{}] }, { allOf: {} }] }, "#/allOf/1/allOf"],
    ["a length that is no number", { enum: ["a"], minLength: { valueOf: 1, toString: 1 } }, "#", '["a"]'],
    ["alternatives whose types are no names", { oneOf: [{ type: [{ toString: 1 }] }, {}] }, "#/oneOf/1"],
    ["a required name that is no text", { required: [{ toString: 1 }] }, "#/required", '{"toString":1}'],
    ["a reference to nothing", { $ref: "#/$defs/x" }, "#/$ref", "#/$defs/x"],
    [
      "a reference to itself",
      { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" },
      "#",
      "#/$defs/a, which refers to itself",
    ],
    [
      "allOf within itself",
      { $defs: { a: { allOf: [{ $ref: "#/$defs/a" }, { minLength: 1 }] } }, $ref: "#/$defs/a" },
      "#/$defs/a",
      "a deeper one",
    ],
    ["overlapping oneOf", { oneOf: [{ type: "integer" }, { type: "number" }] }, "#/oneOf/1"],
    ["two patterns", { allOf: [{ type: "string", pattern: "a" }, { pattern: "b" }] }, "#/allOf/1/pattern"],
    ["an empty enum", { enum: [] }, "#/enum", "[]"],
    ["an enum that its type rules out", { type: "string", enum: [1, 2] }, "#", "[1,2]"],
  ];
  it.each(refused)("refuses %s, naming the place", (_, schema, place, received) => {
    const refuse = () => jsonSchemaToGrammar(schema);
    expect(refuse).toThrow(DataError);
    const error = { code: "data/unsupported-schema", subject: `JSON Schema at ${place}` };
    expect(refuse).toThrow(expect.objectContaining(received === undefined ? error : { ...error, received }));
  });

  const numbered = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => make(i));
  /** Each schema contains the previous one twice. */
  const doubled = (make: (before: { $ref: string }, i: number) => JsonSchema): JsonSchema => ({
    $defs: Object.fromEntries(
      numbered(60, (i) => [`a${i}`, i === 0 ? { type: "string" } : make({ $ref: `#/$defs/a${i - 1}` }, i)]),
    ),
    $ref: "#/$defs/a59",
  });
  const many = <T>(count: number, each: T): T[] => numbered(count, () => each);
  const evil = `${"a".repeat(40)}!`;
  const endless: [string, JsonSchema][] = [
    ["a listed value against a pattern", { type: "string", enum: [evil], pattern: "^(a+)+$" }],
    ["an only value against a pattern", { anyOf: [{ const: evil, pattern: "^(a+)+$" }] }],
    ["a part of a listed value against a pattern", { enum: [{ x: evil }], properties: { x: { pattern: "^(a+)+$" } } }],
    [
      "a nested value against alternatives of itself",
      {
        $defs: { a: { anyOf: [{ items: { $ref: "#/$defs/a" } }, { items: { $ref: "#/$defs/a" }, minItems: 2 }] } },
        enum: [JSON.parse(`${"[".repeat(60)}1${"]".repeat(60)}`)],
        items: { $ref: "#/$defs/a" },
      },
    ],
    [
      "references that double",
      doubled((a, i) => ({
        anyOf: [
          { ...a, maxLength: i },
          { ...a, minLength: i + 1 },
        ],
      })),
    ],
    [
      "thousands of properties",
      { type: "object", properties: Object.fromEntries(numbered(6000, (i) => [`p${i}`, { type: "string" }])) },
    ],
    ["thousands of listed values", { enum: numbered(100_000, (i) => `v${i}`) }],
    ["thousands of alternatives", { oneOf: numbered(5000, (i) => ({ const: i })) }],
    [
      "a long name beside any others",
      { type: "object", properties: { ["k".repeat(100_000)]: {} }, additionalProperties: true },
    ],
    ["a long pattern", { type: "string", pattern: ".".repeat(100_000) }],
    ["parts with many types", { allOf: [{ type: many(120_000, "x") }, { type: many(120_000, "y") }] }],
    ["a long list of parts", { allOf: numbered(1000, (i) => ({ properties: { [`x${i}`]: {} } })) }],
  ];
  it.each(endless)("does bounded work: refuses %s", (_, schema) => {
    expect(() => jsonSchemaToGrammar(schema)).toThrow(expect.objectContaining({ code: "data/unsupported-schema" }));
  });

  /** All count as work, whatever else is wrong with them. */
  const costly: [string, JsonSchema][] = [
    ["listed values against a long list of types", { enum: many(10, 0), type: many(300_000, "x") }],
    ["listed values against a long constant", { enum: many(10, 0), const: "x".repeat(1_000_000) }],
    ["listed values against a bound that is a long list", { enum: many(10, "a"), minLength: [many(500_000, 0)] }],
    ["a long list of types", { type: many(200_000, "null") }],
    ["two alternatives with many values", { oneOf: [{ enum: many(80_000, 0) }, { enum: many(80_000, "") }] }],
    [
      "many alternatives of which each refers to many values",
      { $defs: { a: { enum: many(500_000, 0) } }, oneOf: many(10_000, { $ref: "#/$defs/a" }) },
    ],
    [
      "a part that closes many properties of another",
      {
        allOf: [
          { properties: {}, additionalProperties: false },
          { properties: Object.fromEntries(numbered(100_000, (i) => [i.toString(36), {}])) },
        ],
      },
    ],
    [
      "a long chain of references, many times",
      {
        $defs: Object.fromEntries(numbered(2001, (i) => [`a${i}`, i === 2000 ? {} : { $ref: `#/$defs/a${i + 1}` }])),
        anyOf: many(200, { $ref: "#/$defs/a0", minLength: 1 }),
      },
    ],
    [
      "a long reference, many times",
      { $defs: { a: { $ref: `#${"/".repeat(1_000_000)}$defs/b` }, b: {} }, oneOf: many(20, { $ref: "#/$defs/a" }) },
    ],
    [
      "a reference with much beside it, many times",
      {
        $defs: { a: { ...Object.fromEntries(numbered(40_000, (i) => [`x-${i}`, 0])), $ref: "#/$defs/b" }, b: {} },
        oneOf: many(20, { $ref: "#/$defs/a" }),
      },
    ],
    [
      "other names than thousands of forbidden ones",
      {
        properties: Object.fromEntries(numbered(40_000, (i) => [String.fromCodePoint(0x1_0000 + i), false])),
        additionalProperties: true,
      },
    ],
  ];
  it.each(costly)("counts as work: %s", (_, schema) => {
    expect(() => jsonSchemaToGrammar(schema)).toThrow(
      expect.objectContaining({ code: "data/unsupported-schema", subject: "JSON Schema" }),
    );
  });

  it("writes large schemas of clients: hundreds of properties, a long list of values, a dozen alternatives", () => {
    const properties = Object.fromEntries(
      numbered(500, (i) => [`property_${i}`, { type: "string", description: "d".repeat(100) }]),
    );
    expect(() => jsonSchemaToGrammar({ type: "object", properties })).not.toThrow();
    expect(() => jsonSchemaToGrammar({ enum: numbered(5000, (i) => `value ${i}`) })).not.toThrow();
    const oneOf = numbered(12, (i) => ({
      type: "object",
      properties: { kind: { const: `kind ${i}` }, ...properties },
      required: ["kind"],
    }));
    expect(() =>
      jsonSchemaToGrammar({
        oneOf: oneOf.map((one) => ({ ...one, properties: { kind: one.properties.kind, a: { type: "string" } } })),
      }),
    ).not.toThrow();
  });

  it("keeps each space of a value in a list of fixed length", () => {
    const grammar = jsonSchemaToGrammar({ prefixItems: [{ const: "a  b" }], items: false });
    expect(grammar).toContain('"\\"a  b\\""');
  });

  it("takes the listed values that satisfy the rest", () => {
    const write = (schema: JsonSchema) => jsonSchemaToGrammar(schema).split("\n")[0];
    expect(write({ type: "string", enum: ["a", "bb", 3, "ccc"], minLength: 2, maxLength: 2 })).toBe(
      'root ::= "\\"bb\\""',
    );
    expect(write({ type: "integer", enum: [1, 2.5, 3, 9], minimum: 2, exclusiveMaximum: 9 })).toBe('root ::= "3"');
    expect(write({ type: "string", nullable: true, enum: ["a", null] })).toBe('root ::= ("\\"a\\"" | "null")');
    expect(write({ enum: [1, 2], const: 2, pattern: "x" })).toBe('root ::= "2"');
  });

  it("passes over annotations and keywords of other types", () => {
    const plain = jsonSchemaToGrammar({ type: "string" });
    const noted = {
      type: "string",
      title: "T",
      description: "D",
      default: "x",
      examples: [1],
      minimum: 3,
      "x-mine": 1,
      $comment: "c",
    };
    expect(jsonSchemaToGrammar(noted)).toBe(plain);
  });
});
