import { isRecord } from "../parsers/make-call.js";

/** True if clearly no value satisfies both schemas: by type, by listed values, or by a property that both require. */
export function areDisjoint(a: unknown, b: unknown): boolean {
  if (a === false || b === false) return true;
  if (!isRecord(a) || !isRecord(b)) return false;
  const [typesOfA, typesOfB] = [listTypes(a), listTypes(b)];
  if (typesOfA && typesOfB && !haveCommon(typesOfA, typesOfB)) return true;
  const [valuesOfA, valuesOfB] = [listValues(a), listValues(b)];
  if (valuesOfA && valuesOfB && !haveCommon(valuesOfA, valuesOfB)) return true;
  if (!isObject(a) || !isObject(b)) return false;
  const required = (schema: Record<string, unknown>) => new Set(Array.isArray(schema.required) ? schema.required : []);
  const ofB = required(b);
  const common = [...required(a)].filter((key) => ofB.has(key));
  return common.some((key) => areDisjoint(property(a, key), property(b, key)));
}

function haveCommon(a: readonly unknown[], b: readonly unknown[]): boolean {
  const ofB = new Set(b);
  return a.some((value) => ofB.has(value));
}

function property(schema: Record<string, unknown>, key: string): unknown {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  return Object.hasOwn(properties, key) ? properties[key] : undefined;
}

function isObject(schema: Record<string, unknown>): boolean {
  const types = [schema.type].flat();
  return types.length === 1 && types[0] === "object";
}

function listValues(schema: Record<string, unknown>): string[] | null {
  const values = Array.isArray(schema.enum) ? schema.enum : Object.hasOwn(schema, "const") ? [schema.const] : null;
  return values?.map((value) => JSON.stringify(value)) ?? null;
}

/** The types of a schema's values, where "integer" counts as "number": whole numbers are numbers. */
function listTypes(schema: Record<string, unknown>): unknown[] | null {
  const typeOf = (value: unknown) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);
  const types: unknown[] | null =
    schema.type !== undefined
      ? [schema.type].flat()
      : Array.isArray(schema.enum)
        ? schema.enum.map(typeOf)
        : Object.hasOwn(schema, "const")
          ? [typeOf(schema.const)]
          : null;
  if (!types) return null;
  return [...types, ...(schema.nullable === true ? ["null"] : [])].map((type) =>
    type === "integer" ? "number" : type,
  );
}
