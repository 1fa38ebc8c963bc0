import { type JsonSchema, ToolError } from "@cria/core";
import type { ToolResult } from "./base-tool.js";
import { toJsonSchema } from "./schema.js";

/**
 * A description of a tool's arguments: a zod 4 type or another Standard Schema that gives JSON Schema, `jsonSchema()`
 * of the AI SDK, or JSON Schema as a plain object.
 */
export type ToolInputSchema = StandardSchema | AiSdkSchema | JsonSchema;

/** The input of `execute`: the schema's parsed output; a record of unknown values for plain JSON Schema. */
export type ToolInput<Schema> = Schema extends { "~standard": { types?: infer Types } }
  ? NonNullable<Types> extends { output: infer Output }
    ? Output
    : Record<string, unknown>
  : Schema extends { _type: infer Type }
    ? Type
    : Record<string, unknown>;

/** The arguments that a caller gives: `ToolInput` before defaults and transformations. */
export type ToolArguments<Schema> = Schema extends { "~standard": { types?: infer Types } }
  ? NonNullable<Types> extends { input: infer Input }
    ? Input
    : Record<string, unknown>
  : ToolInput<Schema>;

/** The interface of https://standardschema.dev, with the JSON Schema that only some libraries give. */
interface StandardSchema {
  "~standard": StandardProps;
}
interface StandardProps {
  validate(value: unknown): StandardResult | Promise<StandardResult>;
  jsonSchema?: { input(options: { target: "draft-2020-12" }): Record<string, unknown> };
}
type StandardResult =
  | { value: unknown; issues?: undefined }
  | { issues: readonly { message: string; path?: readonly unknown[] | undefined }[] };

/** The result of the AI SDK's `jsonSchema()`. */
interface AiSdkSchema {
  jsonSchema: object | PromiseLike<object>;
  validate?: ((value: unknown) => Validation | PromiseLike<Validation>) | undefined;
}
type Validation = { success: true; value: unknown } | { success: false; error: Error };

/** A schema of any kind, read. */
export interface ReadSchema {
  /** A promise only from the AI SDK's `jsonSchema()`. */
  jsonSchema: JsonSchema | PromiseLike<JsonSchema>;
  /** Parses arguments; undefined for plain JSON Schema. */
  validate?: ((value: unknown) => Validation | PromiseLike<Validation>) | undefined;
}

/**
 * Reads a schema of a tool's arguments, of any kind.
 * @param subject the schema's owner, for errors.
 * @throws ToolError for a value of another kind, such as a type of zod 3.
 */
export function readInputSchema(subject: string, given: unknown): ReadSchema {
  const schema: unknown = typeof given === "function" && !("~standard" in given) ? given() : given;
  const isObject = (typeof schema === "object" && schema !== null) || typeof schema === "function";
  if (isObject && !Array.isArray(schema)) {
    if ("jsonSchema" in schema) return readAiSdkSchema(schema as AiSdkSchema);
    const standard = "~standard" in schema ? (schema["~standard"] as StandardProps) : undefined;
    if ("_zod" in schema)
      return {
        jsonSchema: toJsonSchema(schema as Parameters<typeof toJsonSchema>[0]),
        validate: validateStandard(standard),
      };
    if (standard?.jsonSchema) {
      const jsonSchema = standard.jsonSchema.input({ target: "draft-2020-12" });
      return { jsonSchema: dropDialect(jsonSchema), validate: validateStandard(standard) };
    }
    const isPlain = Object.getPrototypeOf(schema) === Object.prototype || Object.getPrototypeOf(schema) === null;
    if (!standard && isPlain) return { jsonSchema: schema as JsonSchema };
  }
  throw new ToolError("has an input schema that cannot be read", {
    code: "tool/bad-schema",
    subject,
    expected: "a zod 4 type, JSON Schema, jsonSchema(...), or a Standard Schema that gives JSON Schema",
    received: describeGiven(schema),
  });
}

/** The answer to arguments that the schema refuses; the model reads it. */
export function refuseArguments(problem: string): ToolResult {
  return {
    response: { text: `error: invalid arguments (${problem})` },
    reward: 0,
    metrics: { invalid_arguments: 1 },
  };
}

function readAiSdkSchema(schema: AiSdkSchema): ReadSchema {
  const jsonSchema = schema.jsonSchema as JsonSchema | PromiseLike<JsonSchema>;
  const validate = schema.validate && ((value: unknown) => schema.validate!(value));
  return { jsonSchema: isPromiseLike(jsonSchema) ? jsonSchema.then(dropDialect) : dropDialect(jsonSchema), validate };
}

export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null)?.then === "function";
}

/** Drops `$schema`, which libraries write and templates would print. */
function dropDialect({ $schema: _, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

function validateStandard(standard: StandardProps | undefined): ReadSchema["validate"] {
  if (!standard) return undefined;
  return async (value) => {
    const result = await standard.validate(value);
    if (!result.issues) return { success: true, value: result.value };
    const problems = result.issues.map(({ message, path }) => {
      const keys = path?.map((key) => String((key as { key?: unknown } | null)?.key ?? key)) ?? [];
      return keys.length > 0 ? `${keys.join(".")}: ${message}` : message;
    });
    return { success: false, error: new Error(problems.join("; ")) };
  };
}

function describeGiven(schema: unknown): string {
  if (schema === null || typeof schema !== "object") return schema === undefined ? "nothing" : typeof schema;
  const vendor = (schema as { "~standard"?: { vendor?: unknown } })["~standard"]?.vendor;
  if (typeof vendor === "string") return `a type of ${vendor} that gives no JSON Schema`;
  return Array.isArray(schema) ? "a list" : `an object of class ${schema.constructor?.name ?? "unknown"}`;
}
