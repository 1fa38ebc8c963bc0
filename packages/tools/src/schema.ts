import { type JsonSchema, ToolError, type ToolSchema } from "@cria/core";
// Not of "zod": bundles then hold what writes JSON Schema, and not every type and language.
import { type $ZodType, toJSONSchema } from "zod/v4/core";

/** OpenAI function schema of a tool, its parameters given as zod type or JSON Schema. */
export function defineToolSchema(name: string, description: string, parameters: $ZodType | JsonSchema): ToolSchema {
  return { type: "function", function: { name, description, parameters: toJsonSchema(parameters) } };
}

/**
 * JSON Schema of what a zod type takes in (defaults are optional, transforms are not applied); JSON Schema stays as it is.
 * @throws ToolError for a type that JSON Schema cannot say, such as a date.
 */
export function toJsonSchema(parameters: $ZodType | JsonSchema): JsonSchema {
  if (!("_zod" in parameters)) return parameters as JsonSchema;
  try {
    const { $schema: _, ...schema } = toJSONSchema(parameters as $ZodType, { io: "input" }) as JsonSchema;
    return schema;
  } catch (cause) {
    throw new ToolError("cannot be written as JSON Schema", {
      code: "tool/bad-schema",
      subject: "zod type of a tool's parameters",
      received: (cause as Error).message,
      remedy: "use types that JSON has",
      cause,
    });
  }
}
