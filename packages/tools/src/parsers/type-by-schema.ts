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
  const types = listTypes(schema, root);
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

/** Every JSON type that a schema allows; none where it says nothing. */
export function listTypes(schema: unknown, root: JsonSchema): Set<string> {
  const types = new Set<string>();
  for (const part of listParts(schema, root)) {
    for (const type of [part.type].flat()) if (typeof type === "string") types.add(type);
    const choices = [part.enum, "const" in part ? [part.const] : []].filter(Array.isArray).flat();
    for (const value of choices) types.add(value === null ? "null" : Array.isArray(value) ? "array" : typeof value);
  }
  return types;
}

/** The schema of an object's property; undefined where the schema of the object says nothing. */
export function findProperty(schema: unknown, key: string, root: JsonSchema): unknown {
  return findInside(schema, root, ({ properties, additionalProperties }) => {
    return isRecord(properties) && Object.hasOwn(properties, key) ? properties[key] : additionalProperties;
  });
}

/** The schema of a list's item; undefined where the schema of the list says nothing. */
export function findItem(schema: unknown, index: number, root: JsonSchema): unknown {
  return findInside(schema, root, ({ items, prefixItems }) => {
    const list = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
    return list[index] ?? items;
  });
}

function findInside(schema: unknown, root: JsonSchema, pick: (part: JsonSchema) => unknown): unknown {
  const found = listParts(schema, root).map(pick).filter(isRecord);
  return found.length > 1 ? { anyOf: found } : found[0];
}

/** A schema and all that it combines, each once: its references may lead back to it in any number of ways. */
function listParts(schema: unknown, root: JsonSchema): JsonSchema[] {
  const found = new Set<JsonSchema>();
  let level: unknown[] = [schema];
  for (let depth = 0; depth <= 5; depth++) {
    const next: unknown[] = [];
    for (const part of level) {
      if (!isRecord(part) || found.has(part)) continue;
      found.add(part);
      for (const each of [part.anyOf, part.oneOf, part.allOf].filter(Array.isArray).flat()) next.push(each);
      if (typeof part.$ref === "string") next.push(resolveLocal(part.$ref, root));
    }
    level = next;
  }
  return [...found];
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
