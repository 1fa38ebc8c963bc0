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

  const refused: [string, JsonSchema | boolean, RegExp][] = [
    ["nothing", false, /at #: /],
    [
      "not",
      { type: "object", properties: { a: { not: { type: "string" } } } },
      /at #\/properties\/a\/not: .*keywords that a grammar can say/s,
    ],
    ["if", { type: "object", if: {}, else: false }, /#\/if/],
    ["patternProperties", { type: "object", patternProperties: { "^a": {} } }, /#\/patternProperties/],
    ["uniqueItems", { type: "array", uniqueItems: true }, /#\/uniqueItems/],
    ["multipleOf", { type: "integer", multipleOf: 3 }, /#\/multipleOf/],
    ["minProperties", { type: "object", minProperties: 1 }, /#\/minProperties/],
    ["maxProperties", { type: "object", additionalProperties: true, maxProperties: 1 }, /#\/maxProperties/],
    ["look-ahead", { type: "string", pattern: "^(?!a)b$" }, /#\/pattern/],
    ["a back reference", { type: "string", pattern: "(a)\\1" }, /#\/pattern/],
    ["a property class", { type: "string", pattern: "\\p{L}" }, /#\/pattern/],
    ["a pattern and a length", { type: "string", pattern: "a", minLength: 2 }, /both/],
    ["backward lengths", { type: "string", minLength: 3, maxLength: 2 }, /minLength up to maxLength/],
    ["no number between", { type: "number", minimum: 0.2, maximum: 0.7 }, /bounds/],
    ["no integer between", { type: "integer", minimum: 3, maximum: 2 }, /bounds/],
    ["bounds of draft 4", { type: "number", exclusiveMinimum: true, minimum: 0 }, /draft 6/],
    ["an unknown type", { type: "text" }, /#\/type/],
    ["types that exclude each other", { allOf: [{ type: "string" }, { type: "number" }] }, /#\/type/],
    ["required but forbidden", { type: "object", required: ["a"], additionalProperties: false }, /#\/required/],
    ["a tuple that is too short", { type: "array", prefixItems: [{}], items: false, minItems: 2 }, /minItems/],
    ["a reference elsewhere", { $ref: "https://example.com/x" }, /#\/\$ref/],
    ["a reference to nothing", { $ref: "#/$defs/x" }, /#\/\$defs\/x/],
    [
      "a reference to itself",
      { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" },
      /back to itself/,
    ],
    [
      "allOf within itself",
      { $defs: { a: { allOf: [{ $ref: "#/$defs/a" }, { minLength: 1 }] } }, $ref: "#/$defs/a" },
      /nested at most 100/,
    ],
    ["overlapping oneOf", { oneOf: [{ type: "integer" }, { type: "number" }] }, /oneOf\/1: .*may overlap/s],
    ["two patterns", { allOf: [{ type: "string", pattern: "a" }, { pattern: "b" }] }, /#\/allOf\/1\/pattern/],
    ["an empty enum", { enum: [] }, /a JSON Schema/],
    ["an enum that its type rules out", { type: "string", enum: [1, 2] }, /satisfies the rest/],
  ];
  it.each(refused)("refuses %s, naming the place", (_, schema, message) => {
    let failure: unknown;
    try {
      jsonSchemaToGrammar(schema);
    } catch (error) {
      failure = error;
    }
    expect(failure).toBeInstanceOf(DataError);
    expect((failure as DataError).code).toBe("data/unsupported-schema");
    expect((failure as Error).message).toMatch(message);
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
