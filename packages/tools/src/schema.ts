import { type JsonSchema, ToolError, type ToolSchema } from "@cria/core";
// Not of "zod": bundles then hold the JSON Schema writer, and not every type and language.
import { type $ZodType, toJSONSchema } from "zod/v4/core";

/** OpenAI function schema of a tool, its parameters given as zod type or JSON Schema. */
export function defineToolSchema(name: string, description: string, parameters: $ZodType | JsonSchema): ToolSchema {
  return { type: "function", function: { name, description, parameters: toJsonSchema(parameters) } };
}

/**
 * JSON Schema of a zod type's input (defaults are optional, transforms are not applied); JSON Schema is returned
 * unchanged.
 * @throws ToolError for a type that JSON Schema cannot express, such as a date.
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
      remedy: "use types that exist in JSON",
      cause,
    });
  }
}
