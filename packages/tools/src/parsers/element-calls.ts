import type { JsonSchema, ToolSchema } from "@cria/core";
import { escapePattern } from "./escape-pattern.js";
import { skipSpace } from "./json-span.js";
import { type ListMarks, parseList } from "./listed-calls.js";
import { makeMalformedCall } from "./make-call.js";
import { type CallBlock, findNextMark } from "./marked-calls.js";
import type { ParsedTurn } from "./tool-parser.js";
import { findItem, findProperty, listTypes, typeBySchema } from "./type-by-schema.js";

/** Notation of calls whose arguments are elements, at every depth: `<key>value</key>`, with a mark before each tag. */
export interface ElementForm extends ListMarks {
  /** The mark before each tag. */
  mark: string;
  /** The element of a call. */
  call: string;
  /** The name of a list's items. */
  item: string;
  /** The expected form, for error texts. */
  shape: string;
}

/** Arguments nested deeper than this are refused. */
const MAX_DEPTH = 100;

class Problem extends Error {}

/**
 * Reads calls whose arguments are elements at every depth. Where the tool's schema lets no object or list through, a value is everything
 * up to its closing tag. Otherwise it is elements or text; elements are a list if all are items and the schema does not say object.
 */
export function parseElementCalls(text: string, form: ElementForm, tools: readonly ToolSchema[]): ParsedTurn {
  return parseList(text, form, (start) => readCall(text, start, form, tools));
}

function readCall(text: string, start: number, form: ElementForm, tools: readonly ToolSchema[]): CallBlock {
  const head = /^([^<>"\n]{1,200})">/.exec(text.slice(start, start + 202));
  const name = head?.[1]?.trim() ?? "";
  const schema = tools.find((tool) => tool.function.name === name)?.function.parameters ?? {};
  const reader = new ElementReader(text, start + (head?.[0].length ?? 0), form, schema);
  try {
    if (name === "") throw new Problem("no name");
    return { calls: [{ name, arguments: reader.readArguments() }], end: reader.at };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    // A broken call ends at the next mark that ends or begins one: a later call may be right.
    const close = `${form.mark}</${form.call}>`;
    const { mark, at } = findNextMark(text, [form.begin, close, form.listEnd], reader.at);
    const reason = `${error.message}; expected ${form.shape}`;
    return { calls: [makeMalformedCall(reason, name)], end: at + (mark === close ? mark.length : 0) };
  }
}

class ElementReader {
  private readonly tag: RegExp;

  constructor(
    private readonly text: string,
    public at: number,
    private readonly form: ElementForm,
    private readonly root: JsonSchema,
  ) {
    this.tag = new RegExp(`${escapePattern(form.mark)}<([^<>/\\n][^<>\\n]{0,199})>`, "y");
  }

  readArguments(): Record<string, unknown> {
    return Object.fromEntries(this.readElements(this.form.call, this.root, 0));
  }

  /** Elements up to the closing tag of what they stand in. */
  private readElements(parent: string, schema: unknown, depth: number): [key: string, value: unknown][] {
    if (depth > MAX_DEPTH) throw new Problem("nested too deeply");
    const found: [string, unknown][] = [];
    for (let items = 0; ; ) {
      this.at = skipSpace(this.text, this.at);
      if (this.take(this.closing(parent))) return found;
      const key = this.takeTag();
      if (key === null) throw new Problem(`${this.closing(parent)} is missing`);
      const item = key === this.form.item ? findItem(schema, items++, this.root) : undefined;
      found.push([key, this.readValue(key, findProperty(schema, key, this.root) ?? item, depth)]);
    }
  }

  private readValue(key: string, schema: unknown, depth: number): unknown {
    const { text, form } = this;
    const types = listTypes(schema, this.root);
    const inside = skipSpace(text, this.at);
    const mayNest = types.size === 0 || types.has("object") || types.has("array");
    if (mayNest && text.startsWith(`${form.mark}<`, inside) && !text.startsWith(`${form.mark}</`, inside)) {
      const elements = this.readElements(key, schema, depth + 1);
      const isList = elements.every(([name]) => name === form.item) && (types.has("array") || !types.has("object"));
      return isList ? elements.map(([, value]) => value) : Object.fromEntries(elements);
    }
    const closing = this.closing(key);
    const end = text.indexOf(closing, this.at);
    const value = text.slice(this.at, end);
    this.at = end < 0 ? text.length : end + closing.length;
    if (end < 0) throw new Problem(`"${key}" is not closed: ${closing} is missing`);
    return value === "" ? emptyValue(types) : typeBySchema(value, schema, this.root);
  }

  private closing(key: string): string {
    return `${this.form.mark}</${key}>`;
  }

  private takeTag(): string | null {
    this.tag.lastIndex = this.at;
    const found = this.tag.exec(this.text);
    if (found === null) return null;
    this.at = this.tag.lastIndex;
    return found[1]!;
  }

  private take(tag: string): boolean {
    if (!this.text.startsWith(tag, this.at)) return false;
    this.at += tag.length;
    return true;
  }
}

/** Nothing between the tags: an empty text, where the schema allows that. */
function emptyValue(types: ReadonlySet<string>): unknown {
  if (types.size === 0 || types.has("string")) return "";
  if (types.has("object")) return {};
  if (types.has("array")) return [];
  return types.has("null") ? null : "";
}
