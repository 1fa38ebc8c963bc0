import type { JsonSchema, ToolSchema } from "@cria/core";
import { isRecord } from "./make-call.js";
import { readPythonLiteral } from "./python-calls.js";

/**
 * Types a value that was written as plain text after its JSON Schema: "3" is a number where the schema wants one, and a
 * text where it wants a text. Objects and arrays are JSON, or what Python's `str()` writes, as the template of Seed-OSS prints them. A
 * value that does not fit stays text, and validation tells the model so.
 * @param root the schema that local `$ref`s start from.
 */
export function typeBySchema(text: string, schema: unknown, root: JsonSchema): unknown {
  const types = listTypes(schema, root, 0);
  const trimmed = text.trim();
  if (types.has("null") && /^(null|none)$/i.test(trimmed)) return null;
  if (types.has("boolean") && /^(true|false)$/i.test(trimmed)) return trimmed.toLowerCase() === "true";
  if ((types.has("number") || types.has("integer")) && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed)) {
    return Number(trimmed);
  }
  if (types.has("object") || types.has("array")) {
    const value = tryParse(trimmed);
    if (types.has(Array.isArray(value) ? "array" : isRecord(value) ? "object" : "none")) return value;
  }
  return text;
}

/** Types the arguments of a call, which were written as plain text, after the schema of its tool. */
export function typeArguments(
  name: string,
  values: Iterable<readonly [key: string, text: string]>,
  tools: readonly ToolSchema[],
): Record<string, unknown> {
  const schema = tools.find((tool) => tool.function.name === name)?.function.parameters ?? {};
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const typed = Array.from(values, ([key, text]) => {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
    return [key, typeBySchema(text, property, schema)] as const;
  });
  return Object.fromEntries(typed);
}

/** Every JSON type that a schema allows; text where it says nothing. */
function listTypes(schema: unknown, root: JsonSchema, depth: number): Set<string> {
  const types = new Set<string>();
  if (!isRecord(schema) || depth > 5) return types;
  for (const type of [schema.type].flat()) if (typeof type === "string") types.add(type);
  const choices = [schema.enum, "const" in schema ? [schema.const] : []].filter(Array.isArray).flat();
  for (const value of choices) types.add(value === null ? "null" : Array.isArray(value) ? "array" : typeof value);
  const parts = [schema.anyOf, schema.oneOf, schema.allOf].filter(Array.isArray).flat();
  if (typeof schema.$ref === "string") parts.push(resolveLocal(schema.$ref, root));
  for (const part of parts) for (const type of listTypes(part, root, depth + 1)) types.add(type);
  return types;
}

function resolveLocal(ref: string, root: JsonSchema): unknown {
  if (!ref.startsWith("#")) return undefined;
  let at: unknown = root;
  for (const key of ref.slice(1).split("/").filter(Boolean)) {
    at = isRecord(at) ? at[key.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
  }
  return at;
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return readPythonLiteral(text);
  }
}
