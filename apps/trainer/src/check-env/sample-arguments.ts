import type { JsonSchema } from "@cria/core";

/** Arguments that fit a JSON Schema: its examples where it has some, else the simplest values. */
export function sampleArguments(schema: JsonSchema, depth = 0): unknown {
  if (depth > 8) return null;
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema.examples[0];
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0];
  for (const key of ["anyOf", "oneOf", "allOf"]) {
    const options = schema[key];
    if (Array.isArray(options) && options.length > 0) return sampleArguments(options[0] as JsonSchema, depth + 1);
  }
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  switch (type) {
    case "string":
      return "example".padEnd(Number(schema.minLength ?? 0), "e").slice(0, Number(schema.maxLength ?? 100));
    case "integer":
    case "number":
      return sampleNumber(schema);
    case "boolean":
      return true;
    case "null":
      return null;
    case "array": {
      const item = sampleArguments((schema.items ?? {}) as JsonSchema, depth + 1);
      return Array.from({ length: Math.max(1, Number(schema.minItems ?? 0)) }, () => item);
    }
    default: {
      const properties = (schema.properties ?? {}) as Record<string, JsonSchema>;
      return Object.fromEntries(
        Object.entries(properties).map(([name, property]) => [name, sampleArguments(property, depth + 1)]),
      );
    }
  }
}

function sampleNumber({ minimum, maximum, exclusiveMinimum }: JsonSchema): number {
  if (typeof minimum === "number") return minimum;
  if (typeof exclusiveMinimum === "number") return Math.floor(exclusiveMinimum) + 1;
  return typeof maximum === "number" ? Math.min(1, maximum) : 1;
}
