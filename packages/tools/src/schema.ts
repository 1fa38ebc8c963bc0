import { createRequire } from "node:module";
import { type JsonSchema, ToolError, type ToolSchema } from "@cria/core";
// Types only: a caller with a zod type has loaded zod already, and others need not wait for it.
import type { $ZodType, toJSONSchema } from "zod/v4/core";

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
    const { $schema: _, ...schema } = writeSchema(parameters as $ZodType) as JsonSchema;
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

/** Types of zod write themselves; those of zod/mini and of zod before 4.2 cannot. */
function writeSchema(type: $ZodType & { toJSONSchema?: (options: { io: "input" }) => object }): object {
  const options = { io: "input" } as const;
  if (type.toJSONSchema) return type.toJSONSchema(options);
  const core = createRequire(import.meta.url)("zod/v4/core") as { toJSONSchema: typeof toJSONSchema };
  return core.toJSONSchema(type, options);
}
