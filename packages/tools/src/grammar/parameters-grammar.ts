import { DataError, type JsonSchema, type ToolSchema } from "@cria/core";
import { isRecord } from "../parsers/make-call.js";
import { anyOf, type GrammarWriter, repeated } from "./grammar-writer.js";
import { DEEPEST, type JsonType, type Place, SchemaGrammar } from "./json-schema-grammar.js";
import { nameType } from "./listed-values.js";
import { checkPropertyCounts, listProperties, type ObjectProperty } from "./object-grammar.js";
import { readCount, stringGrammar } from "./string-grammar.js";
import { bareForm, bareText, type TextForm } from "./text-form.js";

/** Notation of a parameter. */
export interface ParameterForm {
  /** An expression for the text before the value; a form may state the value's JSON type there. */
  open: (key: string, type: JsonType) => string;
  /** An expression for the text behind the value. */
  close: (key: string) => string;
  /** The beginning of `close`, after white space: no text contains it. */
  closeTag: string;
  /** Matches names that can be written. */
  keys: RegExp;
  /** True if `open` states whether a value is a text. Otherwise the parser infers the type from the schema. */
  saysType?: boolean;
  /**
   * The name of a list's items, where objects and lists are written as elements, too, as far as the schema names what is in them.
   * Otherwise they are JSON.
   */
  itemKey?: string;
}

/**
 * A tool's arguments as elements of their own, in the schema's order: texts bare, all else as JSON. Where a parser types a value by
 * what the schema lets through, a text beside other types must not look like one of them.
 */
export function parametersGrammar(writer: GrammarWriter, tool: ToolSchema, parameter: ParameterForm): string {
  const grammar = new SchemaGrammar(writer, tool.function.parameters, true);
  return new ParametersWriter(grammar, parameter).write(listParameters(grammar, tool, parameter.keys));
}

/**
 * Lists a tool's parameters, for formats that pass each by name.
 * @param keys matches names that can be written.
 * @throws DataError for names that cannot, and for parameters that are no list of properties.
 */
export function listParameters(grammar: SchemaGrammar, tool: ToolSchema, keys: RegExp): ObjectProperty[] {
  const { name, parameters } = tool.function;
  const place = `tool "${name}"`;
  for (const key of ["anyOf", "oneOf", "allOf", "$ref"]) {
    if (key in parameters) grammar.refuse(`${place}/${key}`, "parameters with properties of their own", key);
  }
  const properties = listProperties(grammar, parameters, place);
  checkPropertyCounts(grammar, parameters, place, properties, false);
  for (const { key } of properties) {
    if (keys.test(key) && key === key.trim()) continue;
    throw new DataError("cannot be called in this format", {
      code: "data/unsupported-schema",
      subject: `parameter ${JSON.stringify(key)} of ${place}`,
      expected: `a name that matches ${keys}`,
      received: key,
      remedy: "rename the parameter",
    });
  }
  return properties;
}

/** First characters of a text that cannot be mistaken for a number, JSON, or true, false, null, none. */
const PLAIN = "[A-EG-MO-SU-Zb-eg-mo-su-z]";

/** Values that the branches of a schema allow: texts, texts beside other types, and values written as JSON. */
interface FoundValues {
  texts: string[];
  plainTexts: string[];
  /** By what stands before them. */
  others: Map<string, string[]>;
}

class ParametersWriter {
  private readonly texts: TextForm;
  private depth = 0;
  /** Rules of what is in objects and lists, by schema: a schema may contain itself. */
  private readonly nested = { object: new Map<JsonSchema, string>(), array: new Map<JsonSchema, string>() };

  constructor(
    private readonly grammar: SchemaGrammar,
    private readonly form: ParameterForm,
  ) {
    this.texts = bareForm(grammar.writer, form.closeTag);
  }

  /** Parameters, or an object's properties. */
  write(properties: readonly ObjectProperty[]): string {
    const parts = properties.map(({ key, schema, isRequired, place }) => {
      const part = this.writeElement(key, { schema, place });
      return isRequired ? part : `(${part})?`;
    });
    return parts.join(" ") || '""';
  }

  /** A value with its opening and closing. */
  private writeElement(key: string, { schema, place }: Place): string {
    const { texts: form } = this;
    const grammar: SchemaGrammar = this.grammar;
    const { open, close, saysType, closeTag } = this.form;
    if (++this.depth > DEEPEST) grammar.refuse(place, `values nested at most ${DEEPEST} deep`, "a deeper one");
    const found: FoundValues = { texts: [], plainTexts: [], others: new Map() };
    const addOther = (type: JsonType, written: string) => {
      grammar.writer.spend(key.length);
      const before = open(key, type);
      const others = found.others.get(before) ?? [];
      others.push(written);
      found.others.set(before, others);
    };
    for (const branch of grammar.branches(schema, place)) {
      if (branch.schema === true) {
        found.texts.push(form.any(0, Number.POSITIVE_INFINITY));
        continue;
      }
      if (!isRecord(branch.schema)) {
        grammar.refuse(branch.place, "a JSON Schema that some value satisfies", JSON.stringify(branch.schema));
      }
      this.addBranch({ ...branch, schema: branch.schema }, found, addOther);
    }
    this.depth--;
    const { texts, plainTexts, others } = found;
    const beside = others.size === 0 || saysType ? texts : plainTexts;
    const parts = [
      ...Array.from(others, ([before, values]) => `${before} ${anyOf(values)}`),
      ...(beside.length > 0 ? [`${open(key, "string")} ${anyOf(beside)}`] : []),
    ];
    if (parts.length === 0) grammar.refuse(place, `a value that can stand before ${closeTag}`, "none");
    return `${anyOf(parts)} ${close(key)}`;
  }

  private addBranch(
    { schema, place }: Place & { schema: JsonSchema },
    found: FoundValues,
    addOther: (type: JsonType, written: string) => void,
  ): void {
    const { grammar, texts: form } = this;
    const values = grammar.listValues(schema, place);
    for (const value of values ?? []) {
      const text = typeof value === "string" ? bareText(value, this.form.closeTag) : null;
      if (typeof value !== "string") addOther(nameType(value) as JsonType, grammar.exactly(value));
      if (text === null) continue;
      found.texts.push(text);
      if (new RegExp(`^${PLAIN}`).test(value as string)) found.plainTexts.push(text);
    }
    if (values) return;
    const types = grammar.listTypes(schema, place);
    const any = form.any(0, Number.POSITIVE_INFINITY);
    // Without a type, the parser treats any value as a text.
    if (types === null) found.texts.push(any);
    for (const type of types ?? []) {
      // The parser does not know OpenAPI's `nullable`.
      if (type === "null" && ![schema.type].flat().includes("null")) continue;
      if (type !== "string") {
        addOther(type, this.writeNested(type, schema, place) ?? grammar.writeType(type, schema, place));
        continue;
      }
      const text = stringGrammar(grammar, form, schema, place);
      found.texts.push(text);
      if (text === any) found.plainTexts.push(`${PLAIN} ${any}`);
    }
  }

  /** An object or a list as elements; null where it is JSON. */
  private writeNested(type: JsonType, schema: JsonSchema, place: string): string | null {
    const { grammar } = this;
    const { itemKey, keys } = this.form;
    if (itemKey === undefined || (type !== "object" && type !== "array")) return null;
    const known = this.nested[type].get(schema);
    if (known !== undefined) return known;
    const asRule = (name: string, write: () => string) => {
      const rule = grammar.writer.open(name);
      this.nested[type].set(schema, rule);
      grammar.writer.close(rule, write());
      return rule;
    };
    if (type === "array" && !("prefixItems" in schema) && !Array.isArray(schema.items) && schema.items !== false) {
      grammar.refuseKeywords(type, schema, place);
      const [least, most] = [readCount(schema.minItems, 0), readCount(schema.maxItems, Number.POSITIVE_INFINITY)];
      if (least > most) grammar.refuse(place, "minItems up to maxItems", `${least} and ${most}`);
      return asRule("items", () => {
        const item = this.writeElement(itemKey, { schema: schema.items ?? true, place: `${place}/items` });
        return repeated(`(${item})`, least, most);
      });
    }
    const isCounted = "minProperties" in schema || "maxProperties" in schema;
    if (type !== "object" || !isRecord(schema.properties) || isCounted) return null;
    grammar.refuseKeywords(type, schema, place);
    const properties = listProperties(grammar, schema, place);
    // No element can have such a name.
    if (!properties.every(({ key }) => keys.test(key))) return null;
    return asRule("elements", () => this.write(properties));
  }
}
