import type { JsonSchema } from "@cria/core";
import { isRecord } from "../parsers/make-call.js";
import { type GrammarWriter, literal, STEP } from "./grammar-writer.js";
import type { SchemaWriter } from "./schema-writer.js";
import { readCount } from "./string-grammar.js";

export interface ObjectProperty {
  key: string;
  schema: unknown;
  isRequired: boolean;
  place: string;
}

/** The properties that an object may have, in the schema's order; required ones that `properties` lacks come last. */
export function listProperties(grammar: SchemaWriter, schema: JsonSchema, place: string): ObjectProperty[] {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const count = Object.keys(properties).length + (Array.isArray(schema.required) ? schema.required.length : 0);
  grammar.writer.spend(STEP * count);
  const required = new Set<string>();
  for (const name of Array.isArray(schema.required) ? schema.required : []) {
    if (typeof name !== "string") grammar.refuse(`${place}/required`, "a list of names", JSON.stringify(name));
    required.add(name);
  }
  const listed = Object.entries(properties).flatMap(([key, value]): ObjectProperty[] => {
    const isRequired = required.has(key);
    // `false` allows no value.
    if (value === false && !isRequired) return [];
    return [{ key, schema: value, isRequired, place: `${place}/properties/${key}` }];
  });
  const others = [...required].filter((key) => !Object.hasOwn(properties, key));
  if (others.length > 0 && schema.additionalProperties === false) {
    grammar.refuse(`${place}/required`, "properties that the schema allows", others.join(", "));
  }
  return [
    ...listed,
    ...others.map((key) => ({
      key,
      schema: schema.additionalProperties ?? true,
      isRequired: true,
      place: `${place}/additionalProperties`,
    })),
  ];
}

/**
 * Refuses numbers of properties that a grammar cannot count: those that the required properties do not reach by
 * themselves, or that the listed ones can exceed.
 */
export function checkPropertyCounts(
  grammar: SchemaWriter,
  schema: JsonSchema,
  place: string,
  properties: readonly ObjectProperty[],
  hasMore: boolean,
): void {
  const least = readCount(schema.minProperties, 0);
  const most = readCount(schema.maxProperties, Number.POSITIVE_INFINITY);
  const required = properties.filter(({ isRequired }) => isRequired).length;
  const isCounted = most < properties.length || (most !== Number.POSITIVE_INFINITY && hasMore);
  if (least <= required && !isCounted) return;
  const key = least > required ? "minProperties" : "maxProperties";
  grammar.refuse(`${place}/${key}`, "numbers of properties that required and properties imply", String(schema[key]));
}

export function objectGrammar(grammar: SchemaWriter, schema: JsonSchema, place: string): string {
  const { space, writer } = grammar;
  const properties = listProperties(grammar, schema, place);
  const more = schema.additionalProperties;
  const hasMore = more !== undefined && more !== false;
  const isAny = properties.length === 0 && more === undefined && !isRecord(schema.properties);
  checkPropertyCounts(grammar, schema, place, properties, hasMore || isAny);
  if (isAny) return grammar.anyObject();
  const pairs = properties.map(({ key, schema: value, place: at, isRequired }) => ({
    text: `${grammar.key(key)} ":" ${space} ${grammar.write(value, at)}`,
    isRequired,
  }));
  const comma = `"," ${space}`;
  let another: string | null = null;
  if (hasMore) {
    const value = grammar.write(more, `${place}/additionalProperties`);
    // `additionalProperties` does not bring back a property that `properties` forbids with `false`.
    const known = [
      ...properties.map(({ key }) => key),
      ...Object.keys(isRecord(schema.properties) ? schema.properties : {}),
    ];
    another = writer.rule("other-property", `${otherKey(grammar, known)} ":" ${space} ${value}`);
  }
  const all = pairsInOrder(writer, pairs, comma, another);
  return all === "" ? `"{" ${space} "}"` : `"{" ${space} ${all} ${space} "}"`;
}

/**
 * Pairs in order, with commas between those that are present; optional ones may be left out. "" if there are none.
 * @param another an expression for further pairs, behind the others; null: none.
 */
export function pairsInOrder(
  writer: GrammarWriter,
  pairs: readonly { text: string; isRequired: boolean }[],
  comma: string,
  another: string | null = null,
): string {
  // Built backwards from the last pair. `after`: the pairs that may follow another one; `first`: those that may come
  // first.
  let after = another === null ? "" : `(${comma} ${another})*`;
  let first = another === null ? "" : `(${another} ${after})?`;
  for (const { text, isRequired } of pairs.toReversed()) {
    const rest = after === "" ? "" : ` ${writer.rule("more", after)}`;
    first = isRequired
      ? `${text}${rest}`
      : first === ""
        ? `(${text}${rest})?`
        : `(${text}${rest} | ${writer.rule("properties", first)})`;
    after = isRequired ? `${comma} ${text}${rest}` : `(${comma} ${text})?${rest}`;
  }
  return first;
}

/** A quoted key without escapes that differs from the known ones. */
function otherKey(grammar: SchemaWriter, known: readonly string[]): string {
  const { writer } = grammar;
  const free = `\\"\\\\\\x00-\\x1f\\x7f${grammar.escapesTags ? "<" : ""}`;
  const rest = writer.rule("key-rest", `[^${free}]*`);
  // Each character of a key is compared once for each character before it.
  writer.spend(known.reduce((sum, key) => sum + key.length ** 2, 0));
  const write = (keys: readonly string[]): string => {
    const ends = keys.includes("");
    // By their first character, what follows it.
    const rests = new Map<string, string[]>();
    for (const key of keys.filter(Boolean)) {
      const head = String.fromCodePoint(key.codePointAt(0)!);
      const others = rests.get(head) ?? [];
      others.push(key.slice(head.length));
      rests.set(head, others);
    }
    const heads = [...rests.keys()];
    const escaped = heads.map((head) => `\\U${head.codePointAt(0)!.toString(16).padStart(8, "0")}`).join("");
    const choices = [
      ...(ends ? [] : ['""']),
      `[^${escaped}${free}] ${rest}`,
      ...heads
        .filter((head) => !/["\\\p{Cc}\p{Cs}]/u.test(head) && !(grammar.escapesTags && head === "<"))
        .map((head) => `${literal(head)} ${write(rests.get(head)!)}`),
    ];
    return writer.rule("other-key", choices.join(" | "));
  };
  return `${grammar.quote} ${write([...new Set(known)])} ${grammar.quote}`;
}
