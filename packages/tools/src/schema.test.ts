import { ToolError } from "@cria/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import { checkToolSchema } from "./check-tool-schema.js";
import { defineToolSchema } from "./schema.js";
import { findArgumentError } from "./validate-arguments.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

describe("defineToolSchema", () => {
  it("writes types of zod/mini, which cannot write themselves", () => {
    const { parameters } = defineToolSchema(
      "weather",
      "Tells it.",
      mini.object({ days: mini._default(mini.int(), 3) }),
    ).function;
    expect(parameters).toMatchObject({ type: "object", properties: { days: { type: "integer", default: 3 } } });
  });

  it("writes the OpenAI function format from zod, defaults optional", () => {
    const parameters = z.object({ city: z.string().describe("Where"), days: z.int().min(1).default(3) });
    expect(defineToolSchema("weather", "Tells it.", parameters)).toEqual({
      type: "function",
      function: {
        name: "weather",
        description: "Tells it.",
        parameters: {
          type: "object",
          properties: {
            city: { type: "string", description: "Where" },
            days: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 3 },
          },
          required: ["city"],
        },
      },
    });
  });

  it("leaves JSON Schema as it is", () => {
    const parameters = { type: "object", properties: { x: { type: "string" } } };
    expect(defineToolSchema("a", "", parameters).function.parameters).toBe(parameters);
  });

  it("refuses zod types that JSON does not have", () => {
    expect(() => defineToolSchema("a", "", z.object({ at: z.date() }))).toThrow(
      expect.objectContaining({ code: "tool/bad-schema", subject: "zod type of a tool's parameters" }),
    );
  });

  it("accepts the same values as zod", () => {
    const type = z.strictObject({ a: z.string(), b: z.int().optional(), c: z.enum(["x", "y"]).nullable().optional() });
    const schema = defineToolSchema("a", "", type);
    const value = fc.oneof(fc.string(), fc.integer(), fc.constantFrom(null, "x", "y", 1.5, [], {}));
    const keys = fc.dictionary(fc.constantFrom("a", "b", "c", "d"), value);
    fc.assert(
      fc.property(keys, (args) => {
        expect(findArgumentError(schema, args) === null).toBe(type.safeParse(args).success);
      }),
      { numRuns: 500 },
    );
  });
});

describe("argument errors", () => {
  const schema = defineToolSchema("edit", "", {
    type: "object",
    properties: {
      path: { type: "string", minLength: 2 },
      line: { type: "integer", minimum: 1 },
      mode: { enum: ["read", "write"] },
      size: { anyOf: [{ type: "number" }, { type: "null" }] },
      options: {
        type: "object",
        properties: { deep: { type: "array", items: { type: "string" } } },
        required: ["deep"],
      },
    },
    required: ["path"],
    additionalProperties: false,
  });

  it.each([
    [{}, 'missing argument "path"'],
    [{ path: "ab", line: "3" }, 'line: expected integer, got "3"'],
    [{ path: "ab", line: 0 }, "line: must be >= 1, got 0"],
    [{ path: "a" }, 'path: must NOT have fewer than 2 characters, got "a"'],
    [{ path: "ab", mode: "x" }, 'mode: expected one of ["read","write"], got "x"'],
    [{ path: "ab", size: "x" }, 'size: expected number or null, got "x"'],
    [{ path: "ab", options: {} }, 'options: missing argument "deep"'],
    [{ path: "ab", options: { deep: ["a", 1] } }, "options.deep.1: expected string, got 1"],
    [{ path: "ab", pth: 1 }, 'unknown argument "pth", known are path, line, mode, size, options'],
    [[], "arguments: expected object, got []"],
  ])("%j: %s", (args, message) => {
    expect(findArgumentError(schema, args)).toBe(message);
  });

  it("stay short for large wrong arguments", () => {
    const message = findArgumentError(schema, {
      path: "ab",
      options: { deep: Array(10_000).fill("x".repeat(1e3)).fill(1) },
    })!;
    expect(message.length).toBeLessThan(400);
    expect(message).toMatch(/and 9995 more$/);
  });

  it("know draft 7 and 2020-12 schemas, unknown formats and repeated $ids", () => {
    const check = (parameters: Record<string, unknown>, args: unknown) =>
      findArgumentError(defineToolSchema("a", "", parameters), args);
    const draft7 = {
      $schema: "http://json-schema.org/draft-07/schema#",
      properties: { x: { items: [{ type: "number" }] } },
    };
    expect(check(draft7, { x: ["a"] })).toMatch(/x\.0: expected number/);
    const draft2020 = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      properties: { x: { prefixItems: [{ type: "number" }] } },
    };
    expect(check(draft2020, { x: ["a"] })).toMatch(/x\.0: expected number/);
    for (const type of ["string", "number"]) {
      const message = check({ $id: "same", properties: { x: { type, format: "no-such" } } }, { x: true });
      expect(message).toBe(`x: expected ${type}, got true`);
    }
    expect(check({}, { anything: 1 })).toBeNull();
  });

  it("a wrong schema is an error that names its tool", () => {
    const wrong = defineToolSchema("broken", "", { type: "objekt" });
    expect(() => checkToolSchema(wrong)).toThrow(ToolError);
    expect(() => checkToolSchema(wrong)).toThrow(
      expect.objectContaining({ code: "tool/bad-schema", subject: 'parameters of tool "broken"' }),
    );
  });
});

describe("an invalid schema", () => {
  const object = (properties: unknown, more: object = {}) => ({ type: "object", properties, ...more });
  it.each<[string, unknown, string, string]>([
    ["objct", { type: "objct" }, 'type: "objct"', 'perhaps "object"'],
    ["numbr", object({ x: { type: "numbr" } }), 'properties.x.type: "numbr"', 'perhaps "number"'],
    [
      "a type deep inside",
      object({ list: { type: "array", items: object({ a: { type: ["strng", "null"] } }) } }),
      'properties.list.items.properties.a.type.0: "strng"',
      'perhaps "string"',
    ],
    ["no type at all", object({ x: { type: 5 } }), "properties.x.type: 5", "one of array, boolean, integer"],
    ["properties that are a list", object(["x"]), 'properties: ["x"]', "an object"],
    ["a property that is a text", object({ x: "string" }), 'properties.x: "string"', "an object or true or false"],
    ["required that is a text", object({ x: {} }, { required: "x" }), 'required: "x"', "a list"],
    [
      "required that properties does not have",
      object({ path: {} }, { required: ["paht"] }),
      'required: "paht"',
      'perhaps "path"',
    ],
    [
      "the same deep inside",
      object({ o: object({ a: {} }, { required: ["b"] }) }),
      'properties.o.required: "b"',
      "names that properties has (a)",
    ],
    ["enum that is no list", object({ x: { enum: "a" } }), 'properties.x.enum: "a"', "a list"],
    [
      "a length that is negative",
      object({ x: { minLength: -1 } }),
      "properties.x.minLength: -1",
      "what JSON Schema allows there",
    ],
    [
      "a reference to nothing",
      object({ x: { $ref: "#/$defs/no" } }),
      '$ref: "#/$defs/no", which does not resolve',
      "references",
    ],
    ["arguments without names", { type: "string" }, 'type: "string"', 'type "object"'],
    ["parameters that are a text", "object", '"object"', "an object"],
  ])("%s: names the place and the expected value", (_, parameters, received, expected) => {
    let error: unknown;
    try {
      checkToolSchema({ type: "function", function: { name: "broken", parameters: parameters as never } });
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(ToolError);
    const told = error as ToolError;
    expect(told).toMatchObject({ code: "tool/bad-schema", subject: 'parameters of tool "broken"', received });
    expect(told.expected).toContain(expected);
    // None of the validator's own wording.
    expect(told.message).not.toMatch(/must be|data\/|schema is invalid/);
  });

  it("does not include the schemas of real tools", () => {
    for (const parameters of [
      {},
      { type: "object" },
      object({}),
      object({ a: { type: ["string", "null"], format: "made-up", "x-note": 1, nullable: true } }, { required: ["a"] }),
      { type: "object", properties: {}, required: ["a"], patternProperties: { "^a": {} } },
      { type: "object", $defs: { p: { type: "integer" } }, properties: { a: { $ref: "#/$defs/p" } } },
      { type: "object", allOf: [object({ a: {} })], properties: { b: {} }, required: ["a"] },
    ])
      expect(() => checkToolSchema({ type: "function", function: { name: "fine", parameters } })).not.toThrow();
  });
});
