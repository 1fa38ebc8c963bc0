import { DataError, type JsonSchema, type ToolSchema } from "@cria/core";
import { isRecord } from "../parsers/make-call.js";
import { anyOf, type GrammarWriter, literal } from "./grammar-writer.js";
import { SchemaGrammar } from "./json-schema-grammar.js";
import { listProperties } from "./object-grammar.js";
import { stringGrammar } from "./string-grammar.js";
import { bareForm, bareText, type TextForm } from "./text-form.js";

/**
 * A tool's arguments as Qwen3-Coder writes them, each as `<parameter=key>\nvalue\n</parameter>`: texts bare, all else
 * as JSON. The parser types a value by the schema's types, so where a schema allows texts and other types, a text must
 * not look like one of those.
 */
export function parametersGrammar(writer: GrammarWriter, tool: ToolSchema): string {
  const { name, parameters } = tool.function;
  const grammar = new SchemaGrammar(writer, parameters, true);
  const form = bareForm(writer);
  const place = `tool "${name}"`;
  for (const key of ["anyOf", "oneOf", "allOf", "$ref", "minProperties"]) {
    if (key in parameters) grammar.refuse(`${place}/${key}`, "parameters that list their properties", key);
  }
  const parts = listProperties(grammar, parameters, place).map(({ key, schema, isRequired, place: at }) => {
    if (!/^[^<>\n]{1,200}$/.test(key) || key !== key.trim()) {
      throw new DataError("cannot be called in this format", {
        code: "data/unsupported-schema",
        subject: `parameter ${JSON.stringify(key)} of ${place}`,
        expected: "a name without <, > and line breaks",
        received: key,
        remedy: "rename the parameter",
      });
    }
    const value = bareValue(grammar, form, schema, at);
    const part = `${literal(`<parameter=${key}>\n`)} ${value} ${literal("\n</parameter>\n")}`;
    return isRequired ? part : `(${part})?`;
  });
  return parts.join(" ") || '""';
}

/** Texts with such a first character are neither numbers nor JSON, nor true, false, null or none. */
const PLAIN = "[A-EG-MO-SU-Zb-eg-mo-su-z]";

function bareValue(grammar: SchemaGrammar, form: TextForm, schema: unknown, place: string): string {
  const any = () => form.any(0, Number.POSITIVE_INFINITY);
  /** Texts; texts of schemas that also allow other types; values written as JSON. */
  const found = { texts: [] as string[], plainTexts: [] as string[], others: [] as string[] };
  for (const branch of grammar.branches(schema, place)) {
    if (branch.schema === true) {
      found.texts.push(any());
      continue;
    }
    if (!isRecord(branch.schema)) {
      grammar.refuse(branch.place, "a JSON Schema that some value satisfies", JSON.stringify(branch.schema));
    }
    addBranch(grammar, form, branch.schema, branch.place, found);
  }
  const { texts, plainTexts, others } = found;
  const written = others.length === 0 ? texts : [...others, ...plainTexts];
  if (written.length === 0) grammar.refuse(place, "a value that can stand before </parameter>", "none");
  return anyOf(written);
}

function addBranch(
  grammar: SchemaGrammar,
  form: TextForm,
  schema: JsonSchema,
  place: string,
  found: Record<"texts" | "plainTexts" | "others", string[]>,
): void {
  const values = grammar.listValues(schema, place);
  for (const value of values ?? []) {
    const text = typeof value === "string" ? bareText(value) : null;
    if (typeof value !== "string") found.others.push(grammar.exactly(value));
    if (text === null) continue;
    found.texts.push(text);
    if (new RegExp(`^${PLAIN}`).test(value as string)) found.plainTexts.push(text);
  }
  if (values) return;
  const types = grammar.listTypes(schema, place);
  const any = form.any(0, Number.POSITIVE_INFINITY);
  // Without a type, the parser takes any value for a text.
  if (types === null) found.texts.push(any);
  for (const type of types ?? []) {
    // The parser does not know OpenAPI's `nullable`.
    if (type === "null" && ![schema.type].flat().includes("null")) continue;
    if (type !== "string") {
      found.others.push(grammar.writeType(type, schema, place));
      continue;
    }
    const text = stringGrammar(grammar, form, schema, place);
    found.texts.push(text);
    if (text === any) found.plainTexts.push(`${PLAIN} ${any}`);
  }
}
