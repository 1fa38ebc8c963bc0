import { DataError, type JsonSchema } from "@cria/core";
import { isRecord } from "../parsers/make-call.js";
import { arrayGrammar } from "./array-grammar.js";
import { anyOf, GrammarWriter, literal, STEP } from "./grammar-writer.js";
import { findFitting } from "./listed-values.js";
import { mergeSchemas } from "./merge-schemas.js";
import { integerGrammar, numberGrammar } from "./number-grammar.js";
import { objectGrammar } from "./object-grammar.js";
import { areDisjoint } from "./one-of.js";
import type { SchemaWriter } from "./schema-writer.js";
import { stringGrammar } from "./string-grammar.js";
import { jsonForm, type TextForm } from "./text-form.js";

/**
 * A grammar (GBNF, for `GenerateOptions.grammar`) of JSON texts that satisfy a JSON Schema. Every text of the grammar
 * is valid, but the grammar does not cover every valid value: properties come in the schema's order, only those named
 * unless `additionalProperties` is there, numbers have at most 16 digits, and white space is that of common printers.
 *
 * Known are `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `items`, `prefixItems`,
 * `minItems`, `maxItems`, `minLength`, `maxLength`, `pattern` (without look-around and back references), the formats
 * date, time, date-time, uuid and email, bounds of numbers, `anyOf`, `oneOf` (where its branches exclude each other),
 * `allOf`, `nullable` and local `$ref`s, also recursive ones.
 * @throws DataError with the place, for a schema that no grammar can express: a grammar must never allow more or other
 * values than the schema.
 */
export function jsonSchemaToGrammar(schema: JsonSchema | boolean): string {
  const writer = new GrammarWriter();
  return writer.write(new SchemaGrammar(writer, schema).write(schema, "#"));
}

const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"] as const;
export type JsonType = (typeof TYPES)[number];

/** Keywords that restrict values of one type or (*) of all, and that no grammar here can express. */
const REFUSED: Record<string, readonly string[]> = {
  "*": ["not", "if", "$dynamicRef", "$recursiveRef"],
  object: [
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
  ],
  array: ["contains", "uniqueItems", "unevaluatedItems"],
  string: [],
  number: ["multipleOf"],
  integer: ["multipleOf"],
  boolean: [],
  null: [],
};
/** Keywords that reveal the type of a schema without `type`. */
const TELLING: [JsonType, readonly string[]][] = [
  ["object", ["properties", "required", "additionalProperties", "minProperties", "maxProperties", ...REFUSED.object!]],
  ["array", ["items", "prefixItems", "minItems", "maxItems", ...REFUSED.array!]],
  ["string", ["minLength", "maxLength", "pattern", "format"]],
  ["number", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]],
];
/** Schemas and values nested deeper are refused. */
export const DEEPEST = 100;

/** A schema and its name in errors. */
export interface Place {
  schema: unknown;
  place: string;
}

/** Writes JSON Schemas as expressions of one grammar. */
export class SchemaGrammar implements SchemaWriter {
  private readonly references = new Map<string, string>();
  private depth = 0;

  /**
   * `root` is where local references start. With `escapesTags` no "<" stands in the JSON, for formats whose marks count inside
   * strings too. `strings` is how strings are written.
   */
  constructor(
    readonly writer: GrammarWriter,
    private readonly root: JsonSchema | boolean,
    readonly escapesTags = false,
    readonly strings: TextForm = jsonForm(writer, escapesTags),
  ) {}

  get quote(): string {
    return '"\\""';
  }

  /** The exact JSON of a value. */
  exactly(value: unknown): string {
    const json = JSON.stringify(value);
    return literal(this.escapesTags ? json.replaceAll("<", "\\u003c") : json);
  }

  /** Exactly the name of a property. */
  key(name: string): string {
    return this.exactly(name);
  }

  /** White space between the parts of a JSON text. */
  get space(): string {
    return this.writer.rule("space", '"" | " " | "\\n" [ \\t]{0,20}');
  }

  /** An expression for the JSON of every value that the schema allows. `place` names it in errors. */
  write(schema: unknown, place: string): string {
    if (schema === true) return this.anyValue();
    if (!isRecord(schema)) this.refuse(place, "a JSON Schema that some value satisfies", JSON.stringify(schema));
    if (++this.depth > DEEPEST) this.refuse(place, `schemas nested at most ${DEEPEST} deep`, "a deeper one");
    try {
      this.writer.spend(STEP);
      const written = this.writeSchema(schema, place);
      this.writer.spend(written.length);
      return written;
    } finally {
      this.depth--;
    }
  }

  private writeSchema(schema: JsonSchema, place: string): string {
    // References are rules, so that a schema may contain itself.
    if (typeof schema.$ref === "string" && !hasMeaning(this.without(schema, "$ref")))
      return this.reference(schema.$ref, place);
    const parts = this.expand(schema, place);
    return parts === null
      ? this.writeTypes(schema, place)
      : anyOf(parts.map((part) => this.write(part.schema, part.place)));
  }

  /** All alternatives of a schema, each with its references and nested alternatives resolved. */
  branches(schema: unknown, place: string): Place[] {
    if (++this.depth > DEEPEST)
      this.refuse(place, "alternatives that do not contain themselves", "a recursive reference");
    this.writer.spend(STEP);
    const target = this.dereference(schema, place);
    const parts = isRecord(target) ? this.expand(target, place) : null;
    const found =
      parts === null ? [{ schema: target, place }] : parts.flatMap((part) => this.branches(part.schema, part.place));
    this.depth--;
    return found;
  }

  /** Resolves one reference, `allOf`, `anyOf` or `oneOf` of a schema; null when the schema has none. */
  private expand(schema: JsonSchema, place: string): Place[] | null {
    if (typeof schema.$ref === "string") return [{ schema: this.dereference(schema, place), place }];
    if (Array.isArray(schema.allOf)) {
      const merged = schema.allOf.reduce<JsonSchema>(
        (sum, part, i) => {
          const at = `${place}/allOf/${i}`;
          return this.merge(sum, this.dereference(part, at), at);
        },
        this.without(schema, "allOf"),
      );
      return [{ schema: merged, place }];
    }
    const key = ["anyOf", "oneOf"].find((one) => schema[one] !== undefined);
    if (key === undefined) return null;
    const list = schema[key];
    if (!Array.isArray(list) || list.length === 0) {
      this.refuse(`${place}/${key}`, "a list of schemas", JSON.stringify(list));
    }
    if (key === "oneOf") this.checkDisjoint(list, place);
    const base = this.without(schema, key);
    const isPlain = !hasMeaning(base);
    return list.map((branch, i) => {
      const at = `${place}/${key}/${i}`;
      return { schema: isPlain ? branch : this.merge(base, this.dereference(branch, at), at), place: at };
    });
  }

  private writeTypes(schema: JsonSchema, place: string): string {
    const values = this.listValues(schema, place);
    if (values) return anyOf(values.map((value) => this.exactly(value)));
    const types = this.listTypes(schema, place);
    return types === null ? this.anyValue() : anyOf(types.map((type) => this.writeType(type, schema, place)));
  }

  /** The values of `enum` and `const` that satisfy the rest of the schema; null without either. */
  listValues(schema: JsonSchema, place: string): unknown[] | null {
    if (schema.enum === undefined && !Object.hasOwn(schema, "const")) return null;
    const listed = schema.enum ?? [schema.const];
    if (!Array.isArray(listed) || listed.length === 0)
      this.refuse(`${place}/enum`, "a JSON Schema: enum is a list of at least one value", JSON.stringify(listed));
    const found = findFitting(listed, schema, this.writer, (key) =>
      this.refuse(`${place}/${key}`, `${key} without enum or const: list the values that satisfy it`, "both"),
    );
    if (found.length === 0) this.refuse(place, "a value that satisfies the rest of the schema", JSON.stringify(listed));
    return found;
  }

  /** The types that a schema names or its keywords reveal; null where it allows all types and restricts none. */
  listTypes(schema: JsonSchema, place: string): JsonType[] | null {
    this.refuseKeywords("*", schema, place);
    const listed: unknown[] =
      schema.type === undefined
        ? TELLING.filter(([, keys]) => keys.some((key) => key in schema)).map(([type]) => type)
        : [schema.type].flat();
    this.writer.spend(STEP * listed.length);
    const given = [...new Set(listed)];
    const unknown = given.find((type) => !TYPES.includes(type as JsonType));
    if (unknown !== undefined) this.refuse(`${place}/type`, TYPES.join(", "), JSON.stringify(unknown));
    if (given.length === 0) {
      if (schema.type !== undefined) this.refuse(`${place}/type`, "a type that all parts of the schema allow", "none");
      return null;
    }
    const types = given as JsonType[];
    return schema.nullable === true && !types.includes("null") ? [...types, "null"] : types;
  }

  writeType(type: JsonType, schema: JsonSchema, place: string): string {
    this.refuseKeywords(type, schema, place);
    switch (type) {
      case "object":
        return this.writer.rule("object", objectGrammar(this, schema, place));
      case "array":
        return this.writer.rule("array", arrayGrammar(this, schema, place));
      case "string":
        return stringGrammar(this, this.strings, schema, place);
      case "boolean":
        return this.writer.rule("boolean", '"true" | "false"');
      case "null":
        return '"null"';
      default:
        return this.writer.rule(type, this.writeNumber(type, schema, place));
    }
  }

  private writeNumber(type: "number" | "integer", schema: JsonSchema, place: string): string {
    const number = (key: string, fallback: number) =>
      typeof schema[key] === "number" ? (schema[key] as number) : fallback;
    const [least, above] = [number("minimum", -Infinity), number("exclusiveMinimum", -Infinity)];
    const [most, below] = [number("maximum", Infinity), number("exclusiveMaximum", Infinity)];
    for (const key of ["exclusiveMinimum", "exclusiveMaximum"]) {
      if (typeof schema[key] === "boolean")
        this.refuse(`${place}/${key}`, "a number (as of draft 6)", String(schema[key]));
    }
    const bounds = {
      least: Math.max(least, above),
      most: Math.min(most, below),
      exclusiveLeast: above > -Infinity && above >= least,
      exclusiveMost: below < Infinity && below <= most,
    };
    const written = type === "integer" ? integerGrammar(bounds) : numberGrammar(bounds);
    if (written === null) this.refuse(place, "bounds with a whole number between them", JSON.stringify(bounds));
    return written;
  }

  /** Any JSON value, of any depth. */
  anyValue(): string {
    return this.reference("any", "#", () => {
      const { space } = this;
      const string = this.strings.any(0, Number.POSITIVE_INFINITY);
      const value = this.references.get("any")!;
      const object = this.anyObject(value);
      const array = this.writer.rule("any-array", `"[" ${space} (${value} ("," ${space} ${value})*)? ${space} "]"`);
      const number = this.writer.rule("number", this.writeNumber("number", {}, "#"));
      return `${object} | ${array} | ${string} | ${number} | "true" | "false" | "null"`;
    });
  }

  anyObject(value = this.anyValue()): string {
    const { space } = this;
    const pair = `${this.strings.any(0, Number.POSITIVE_INFINITY)} ":" ${space} ${value}`;
    return this.writer.rule("any-object", `"{" ${space} (${pair} ("," ${space} ${pair})*)? ${space} "}"`);
  }

  /** A rule for the target of a reference, which may refer to itself. */
  private reference(ref: string, place: string, body?: () => string): string {
    const known = this.references.get(ref);
    if (known !== undefined) return known;
    const target = body ? undefined : this.resolve(ref, place);
    const name = this.writer.open(ref.split("/").at(-1) || "schema");
    this.references.set(ref, name);
    this.writer.close(name, body ? body() : this.write(target, ref));
    return name;
  }

  /** The schema at the end of a chain of references, which must not be endless. */
  private resolve(ref: string, place: string): unknown {
    const seen = new Set<string>();
    for (let next: string = ref; ; ) {
      if (seen.has(next)) this.refuse(place, "a reference that leads to a schema", `${ref}, which refers to itself`);
      seen.add(next);
      const found = this.lookUp(next, place);
      if (!isRecord(found) || typeof found.$ref !== "string" || hasMeaning(this.without(found, "$ref"))) return found;
      next = found.$ref;
    }
  }

  private lookUp(ref: string, place: string): unknown {
    let at: unknown = ref.startsWith("#") ? this.root : undefined;
    const parts = ref.slice(1).split("/");
    this.writer.spend(STEP * parts.length + ref.length);
    for (const part of parts.filter(Boolean)) {
      const key = decodeName(part);
      const isThere = key !== null && (isRecord(at) || Array.isArray(at)) && Object.hasOwn(at, key);
      at = isThere ? (at as JsonSchema)[key] : undefined;
    }
    if (at === undefined) this.refuse(`${place}/$ref`, "a place in the same schema, such as #/$defs/name", ref);
    return at;
  }

  private dereference(schema: unknown, place: string): unknown {
    if (!isRecord(schema) || typeof schema.$ref !== "string") return schema;
    const target = this.resolve(schema.$ref, place);
    const rest = this.without(schema, "$ref");
    return hasMeaning(rest) ? this.merge(rest, target, place) : target;
  }

  private merge(a: JsonSchema, b: unknown, place: string): JsonSchema {
    this.writer.spend(STEP);
    if (b === true) return a;
    this.writer.spend(JSON.stringify(a).length + JSON.stringify(b).length);
    if (!isRecord(b)) this.refuse(place, "a JSON Schema that some value satisfies", JSON.stringify(b));
    for (const key of ["anyOf", "oneOf"]) {
      if (key in a && key in b) this.refuse(`${place}/${key}`, `one ${key} for a value`, "two, which must both hold");
    }
    const merged = mergeSchemas(a, b);
    if ("conflict" in merged && typeof merged.conflict === "string" && Object.keys(merged).length === 1) {
      this.refuse(
        `${place}/${merged.conflict}`,
        `${merged.conflict} in one part of the schema only`,
        "two, which must both hold",
      );
    }
    return merged as JsonSchema;
  }

  private checkDisjoint(branches: readonly unknown[], place: string): void {
    const resolved = branches.map((branch, i) => {
      const target = this.dereference(branch, `${place}/oneOf/${i}`);
      // Each branch is compared with each other one.
      this.writer.spend((STEP + (JSON.stringify(target)?.length ?? 0)) * branches.length);
      return target;
    });
    for (const [i, one] of resolved.entries()) {
      for (const other of resolved.slice(0, i)) {
        if (areDisjoint(one, other)) continue;
        this.refuse(
          `${place}/oneOf/${i}`,
          "branches that exclude each other",
          "two that may overlap; use anyOf to allow both",
        );
      }
    }
  }

  /** A copy of a schema without one of its keywords. */
  private without(schema: JsonSchema, key: string): JsonSchema {
    this.writer.spend(STEP * Object.keys(schema).length);
    const { [key]: _, ...rest } = schema;
    return rest;
  }

  /** @throws DataError for a keyword of this type that no grammar expresses. */
  refuseKeywords(type: string, schema: JsonSchema, place: string): void {
    for (const key of REFUSED[type]!) {
      const value = schema[key];
      // Values with which the keyword restricts nothing: any items, repeated items, multiples of 1.
      const saysNothing =
        value === undefined ||
        (key.startsWith("unevaluated") && value === true) ||
        (key === "uniqueItems" && value === false) ||
        (key === "multipleOf" && value === 1 && type === "integer");
      if (saysNothing) continue;
      this.refuse(`${place}/${key}`, "keywords that a grammar can express", key);
    }
  }

  refuse(place: string, expected: string, received: string): never {
    throw new DataError("cannot be written as a grammar", {
      code: "data/unsupported-schema",
      subject: `JSON Schema at ${place}`,
      expected,
      received: received.length > 200 ? `${received.slice(0, 197)}...` : received,
      remedy: "simplify the schema there, or sample without a grammar and check afterwards",
    });
  }
}

/** Keywords that restrict values, unlike annotations. */
const MEANING = new Set([
  "type",
  "enum",
  "const",
  "allOf",
  "anyOf",
  "oneOf",
  "$ref",
  "nullable",
  ...Object.values(REFUSED).flat(),
  ...TELLING.flatMap(([, keys]) => keys),
]);

function hasMeaning(schema: JsonSchema): boolean {
  return Object.keys(schema).some((key) => restricts(schema, key));
}

/** True if a keyword of the schema restricts values. */
export function restricts(schema: JsonSchema, key: string): boolean {
  return schema[key] !== undefined && MEANING.has(key);
}

/** A name in a reference; null where a percent sign in it encodes nothing. */
function decodeName(part: string): string | null {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return null;
  }
}
