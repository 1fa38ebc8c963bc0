import type { JsonSchema, ToolSchema } from "@cria/core";
import { z } from "zod";

/** OpenAI function schema of a tool, its parameters given as zod object or JSON Schema. */
export function defineToolSchema(name: string, description: string, parameters: z.ZodObject | JsonSchema): ToolSchema {
  return { type: "function", function: { name, description, parameters: toJsonSchema(parameters) } };
}

function toJsonSchema(parameters: z.ZodObject | JsonSchema): JsonSchema {
  if (!(parameters instanceof z.ZodType)) return parameters;
  const { $schema: _, additionalProperties: __, ...schema } = z.toJSONSchema(parameters) as JsonSchema;
  return schema;
}

/** Checks parsed arguments against a tool's JSON Schema; the message is written for the model to read. Null when they fit. */
export function findArgumentError(schema: ToolSchema, args: unknown): string | null {
  const result = z.fromJSONSchema(schema.function.parameters as Parameters<typeof z.fromJSONSchema>[0]).safeParse(args);
  if (result.success) return null;
  return result.error.issues.map((issue) => `${issue.path.join(".") || "arguments"}: ${issue.message}`).join("; ");
}
