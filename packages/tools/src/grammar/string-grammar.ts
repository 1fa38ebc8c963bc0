import type { JsonSchema } from "@cria/core";
import { patternGrammar } from "./pattern-grammar.js";
import type { SchemaWriter } from "./schema-writer.js";
import type { TextForm } from "./text-form.js";

const DATE = "\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])";
const TIME = "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,3})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)";
/** Strings that every library accepts for the format, also those with narrower patterns. */
const FORMATS: Record<string, string> = {
  date: `^${DATE}$`,
  time: `^${TIME}$`,
  "date-time": `^${DATE}T${TIME.replace("|[+-]([01]\\d|2[0-3]):[0-5]\\d", "")}$`,
  uuid: "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
  email: "^[a-z0-9]{1,30}(\\.[a-z0-9]{1,30})?@[a-z0-9]{1,30}\\.[a-z]{2,10}$",
};

/** Longest grammar text for one character of a pattern, such as `\\W`. */
const MOST_OF_A_CHARACTER = 400;

/** A string in its form, by length, pattern or format. */
export function stringGrammar(grammar: SchemaWriter, form: TextForm, schema: JsonSchema, place: string): string {
  const least = readCount(schema.minLength, 0);
  const most = readCount(schema.maxLength, Number.POSITIVE_INFINITY);
  const hasLength = least > 0 || most !== Number.POSITIVE_INFINITY;
  if (least > most) grammar.refuse(place, "minLength up to maxLength", `${least} and ${most}`);
  const format =
    typeof schema.format === "string" && Object.hasOwn(FORMATS, schema.format) ? FORMATS[schema.format]! : null;
  // A format is an annotation, so a schema's lengths come before it.
  const pattern = typeof schema.pattern === "string" ? schema.pattern : hasLength ? null : format;
  if (pattern === null) return form.any(least, most);
  if (hasLength) grammar.refuse(`${place}/pattern`, "a pattern, or minLength and maxLength", "both");
  grammar.writer.spend(pattern.length * MOST_OF_A_CHARACTER);
  // Libraries write a pattern next to a format, often one with look-around.
  const written = patternGrammar(pattern, form) ?? (format === null ? null : patternGrammar(format, form));
  if (written === null) {
    grammar.refuse(
      `${place}/pattern`,
      "a pattern without look-around, back references and Unicode properties",
      pattern,
    );
  }
  return grammar.writer.rule(
    typeof schema.pattern === "string" ? "pattern" : String(schema.format),
    form.wrap(written),
  );
}

/**
 * A length or number of items. JSON Schema has no fractions, which are rounded down, and no negative ones: `fallback`.
 */
export function readCount(value: unknown, fallback: number): number {
  return typeof value === "number" && value >= 0 ? Math.floor(value) : fallback;
}
