import type { JsonSchema } from "@cria/core";

/** Checks that are fast for every schema. `pattern` is not among them: an untrusted one may take JavaScript forever. */
const CHECKS: Record<string, (value: unknown, bound: unknown) => boolean> = {
  type: (value, type) => [type].flat().some((one) => isOfType(value, one)),
  const: (value, other) => JSON.stringify(value) === JSON.stringify(other),
  minLength: (value, least) => typeof value !== "string" || [...value].length >= Number(least),
  maxLength: (value, most) => typeof value !== "string" || [...value].length <= Number(most),
  minimum: (value, least) => typeof value !== "number" || value >= Number(least),
  maximum: (value, most) => typeof value !== "number" || value <= Number(most),
  exclusiveMinimum: (value, least) => typeof value !== "number" || value > Number(least),
  exclusiveMaximum: (value, most) => typeof value !== "number" || value < Number(most),
};

/** Keywords, by type of value, that are not checked here. */
const UNCHECKED: Record<string, readonly string[]> = {
  string: ["pattern"],
  number: ["multipleOf"],
  object: [
    ...["properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties"],
    ...["propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"],
  ],
  array: [
    ...["items", "prefixItems", "additionalItems", "minItems", "maxItems", "contains", "uniqueItems"],
    "unevaluatedItems",
  ],
};
const ALWAYS_UNCHECKED = ["not", "if", "$dynamicRef", "$recursiveRef"];

/**
 * The listed values that satisfy the rest of a schema.
 * @param refuse called with a keyword that restricts them and is not checked here.
 */
export function findFitting(
  values: readonly unknown[],
  schema: JsonSchema,
  refuse: (keyword: string) => never,
): unknown[] {
  const { nullable } = schema;
  const fitting = values.filter((value) =>
    Object.entries(CHECKS).every(([key, check]) => {
      if (!Object.hasOwn(schema, key) || schema[key] === undefined) return true;
      return check(value, schema[key]) || (key === "type" && nullable === true && value === null);
    }),
  );
  const types = new Set(fitting.map(nameType));
  const unchecked = [...ALWAYS_UNCHECKED, ...[...types].flatMap((type) => UNCHECKED[type] ?? [])];
  const keyword = unchecked.find((key) => schema[key] !== undefined);
  return keyword === undefined ? fitting : refuse(keyword);
}

function isOfType(value: unknown, type: unknown): boolean {
  return type === "integer" ? Number.isInteger(value) : nameType(value) === type;
}

/** The JSON type of a value. */
export function nameType(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
