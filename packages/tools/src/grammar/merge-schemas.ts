import type { JsonSchema } from "@cria/core";
import { isRecord } from "../parsers/make-call.js";

/** Bounds of which a value must satisfy both: the larger of lower bounds, the smaller of upper ones. */
const TIGHTEST: Record<string, (a: number, b: number) => number> = {
  minimum: Math.max,
  exclusiveMinimum: Math.max,
  minLength: Math.max,
  minItems: Math.max,
  minProperties: Math.max,
  maximum: Math.min,
  exclusiveMaximum: Math.min,
  maxLength: Math.min,
  maxItems: Math.min,
  maxProperties: Math.min,
};

/** One schema for the values that satisfy both, or the keyword for which no single schema exists. */
export function mergeSchemas(a: JsonSchema, b: JsonSchema): JsonSchema | { conflict: string } {
  const merged: JsonSchema = { ...a };
  for (const [key, value] of Object.entries(b)) {
    const other = merged[key];
    if (other === undefined || JSON.stringify(other) === JSON.stringify(value)) {
      merged[key] = value;
    } else if (Object.hasOwn(TIGHTEST, key) && typeof other === "number" && typeof value === "number") {
      merged[key] = TIGHTEST[key]!(other, value);
    } else if (key === "type") {
      const types = intersectTypes([other].flat(), [value].flat());
      merged.type = types;
    } else if (key === "enum" && Array.isArray(other) && Array.isArray(value)) {
      const texts = new Set(value.map((one) => JSON.stringify(one)));
      merged.enum = other.filter((one) => texts.has(JSON.stringify(one)));
    } else if (key === "required" && Array.isArray(other) && Array.isArray(value)) {
      merged.required = [...new Set([...other, ...value])];
    } else if (key === "properties" && isRecord(other) && isRecord(value)) {
      merged.properties = mergeProperties(other, value);
    } else if (key === "items") {
      merged.items = { allOf: [other, value] };
    } else if (key === "allOf" && Array.isArray(other) && Array.isArray(value)) {
      merged.allOf = [...other, ...value];
    } else if (key === "$defs" || key === "definitions" || isAnnotation(key)) {
    } else if (key === "additionalProperties") {
      merged[key] = other === true ? value : value === true ? other : false;
    } else {
      return { conflict: key };
    }
  }
  return closeProperties(merged, a, b);
}

/** A schema that allows no other properties than its own rules out those of the other one. */
function closeProperties(merged: JsonSchema, a: JsonSchema, b: JsonSchema): JsonSchema | { conflict: string } {
  for (const [one, other] of [
    [a, b],
    [b, a],
  ] as const) {
    if (one.additionalProperties === undefined || one.additionalProperties === true) continue;
    const own = isRecord(one.properties) ? one.properties : {};
    const foreign = new Set(
      Object.keys(isRecord(other.properties) ? other.properties : {}).filter((key) => !Object.hasOwn(own, key)),
    );
    if (foreign.size === 0) continue;
    if (one.additionalProperties !== false) return { conflict: "additionalProperties" };
    merged.properties = Object.fromEntries(
      Object.entries(merged.properties as JsonSchema).map(([key, value]) => [key, foreign.has(key) ? false : value]),
    );
  }
  return merged;
}

function mergeProperties(a: JsonSchema, b: JsonSchema): JsonSchema {
  const merged = new Map(Object.entries(a));
  for (const [key, value] of Object.entries(b)) {
    merged.set(key, merged.has(key) ? { allOf: [merged.get(key), value] } : value);
  }
  return Object.fromEntries(merged);
}

function intersectTypes(a: readonly unknown[], b: readonly unknown[]): unknown[] {
  const [ofA, ofB] = [new Set(a), new Set(b)];
  const has = (types: ReadonlySet<unknown>, type: unknown) =>
    types.has(type) || (type === "integer" && types.has("number"));
  return [...new Set([...a.filter((type) => has(ofB, type)), ...b.filter((type) => has(ofA, type))])];
}

const ANNOTATIONS = new Set([
  "title",
  "description",
  "default",
  "examples",
  "example",
  "deprecated",
  "readOnly",
  "writeOnly",
  "$comment",
  "$schema",
  "$id",
  "contentEncoding",
  "contentMediaType",
]);

function isAnnotation(key: string): boolean {
  return ANNOTATIONS.has(key) || key.startsWith("x-");
}
