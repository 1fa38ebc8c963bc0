import type { JsonSchema } from "@cria/core";
import { type GrammarWriter, STEP } from "./grammar-writer.js";

/** Makes the check of a keyword from what the schema says there, which is read once for all values. */
type MakeCheck = (said: unknown) => (value: unknown) => boolean;

/** Checks that are fast for every schema. `pattern` is not among them: an untrusted one may take JavaScript forever. */
const CHECKS: Record<string, MakeCheck> = {
  type: (said) => {
    const types = new Set<unknown>([said].flat());
    return (value) => types.has(nameType(value)) || (types.has("integer") && Number.isInteger(value));
  },
  const: (said) => {
    const json = JSON.stringify(said);
    return (value) => JSON.stringify(value) === json;
  },
  minLength: boundOfLength((length, least) => length >= least),
  maxLength: boundOfLength((length, most) => length <= most),
  minimum: boundOfNumber((value, least) => value >= least),
  maximum: boundOfNumber((value, most) => value <= most),
  exclusiveMinimum: boundOfNumber((value, least) => value > least),
  exclusiveMaximum: boundOfNumber((value, most) => value < most),
};

function boundOfLength(isWithin: (length: number, bound: number) => boolean): MakeCheck {
  return (said) => {
    const bound = readBound(said);
    return (value) => bound === null || typeof value !== "string" || isWithin([...value].length, bound);
  };
}

function boundOfNumber(isWithin: (value: number, bound: number) => boolean): MakeCheck {
  return (said) => {
    const bound = readBound(said);
    return (value) => bound === null || typeof value !== "number" || isWithin(value, bound);
  };
}

/** Nothing lies within a bound that is no number; null is no bound. */
function readBound(said: unknown): number | null {
  if (said === null) return null;
  return typeof said === "object" ? Number.NaN : Number(said);
}

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
  writer: GrammarWriter,
  refuse: (keyword: string) => never,
): unknown[] {
  const said = Object.keys(CHECKS).filter((key) => Object.hasOwn(schema, key) && schema[key] !== undefined);
  for (const compared of [...values, ...said.map((key) => schema[key])]) {
    writer.spend(STEP + (JSON.stringify(compared)?.length ?? 0));
  }
  const checks = said.map((key) => ({ key, check: CHECKS[key]!(schema[key]) }));
  const fitting = values.filter((value) =>
    checks.every(({ key, check }) => check(value) || (key === "type" && schema.nullable === true && value === null)),
  );
  const types = new Set(fitting.map(nameType));
  const unchecked = [...ALWAYS_UNCHECKED, ...[...types].flatMap((type) => UNCHECKED[type] ?? [])];
  const keyword = unchecked.find((key) => schema[key] !== undefined);
  return keyword === undefined ? fitting : refuse(keyword);
}

/** The JSON type of a value. */
export function nameType(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
