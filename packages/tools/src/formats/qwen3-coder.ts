import type { ToolSchema } from "@cria/core";
import { literal } from "../grammar/grammar-writer.js";
import { parametersGrammar } from "../grammar/parameters-grammar.js";
import { bareName, inRow, NEWLINE, writeCalls } from "../grammar/turn-grammar.js";
import { beginsAtEnd, type CallStartFinder } from "../parsers/call-start.js";
import { isRecord, keepText, makeMalformedCall } from "../parsers/make-call.js";
import { skipThinking, thinkingPattern } from "../parsers/thinking.js";
import type { ParsedToolCall, ToolParser } from "../parsers/tool-parser.js";
import { typeBySchema } from "../parsers/type-by-schema.js";
import { defineToolFormat } from "./tool-format.js";

const SHAPE = "<tool_call><function=name><parameter=key>value</parameter></function></tool_call>";
const TAG =
  /<think>|\[THINK\]|<tool_call>|<\/tool_call>|<function=([^<>\n]{0,200})>|<\/function>|<parameter=([^<>\n]{0,200})>|<\/parameter>/g;

const NAMED_TAG = /<(function|parameter)=[^<>\n]{0,200}>/y;
const TAG_BEGINNING = /^<(?:function|parameter)=[^<>\n]{0,200}$/;

const callStart: CallStartFinder = {
  candidate: /</,
  look: (text, at) => {
    if (text.startsWith("<tool_call>", at)) return "call";
    NAMED_TAG.lastIndex = at;
    const tag = NAMED_TAG.exec(text);
    // A stray parameter is text, even if its name looks like a tag.
    if (tag) return tag[1] === "function" ? "call" : tag[0].length;
    const isBeginning =
      ["<tool_call>", "<function=", "<parameter="].some((mark) => beginsAtEnd(mark, text, at)) ||
      TAG_BEGINNING.test(text.slice(at, at + 250));
    return isBeginning ? "wait" : 1;
  },
};

/** A call being read. */
interface OpenCall {
  /** Index at which the call's text begins. */
  from: number;
  name: string | null;
  values: Map<string, string>;
  /** The parameter whose value is being read, and where the value starts. */
  parameter: { key: string; start: number } | null;
  closed: boolean;
  error: string | null;
}

const parse: ToolParser = (text, tools = []) => {
  const calls: ParsedToolCall[] = [];
  const content: string[] = [];
  let copied = 0;
  let open: OpenCall | null = null;
  const begin = (from: number): OpenCall => {
    content.push(text.slice(copied, from));
    return { from, name: null, values: new Map(), parameter: null, closed: false, error: null };
  };
  const finish = (call: OpenCall, end: number) => {
    calls.push(...keepText([makeXmlCall(call, tools)], text.slice(call.from, end)));
    copied = end;
    open = null;
  };
  let thoughtUntil = 0;
  for (const tag of text.matchAll(TAG)) {
    const end = tag.index + tag[0].length;
    // Inside a value only its own closing tag counts: code may well contain the others.
    if (tag.index < thoughtUntil || (open?.parameter && tag[0] !== "</parameter>")) continue;
    if (thinkingPattern.test(tag[0])) {
      if (!open) thoughtUntil = skipThinking(text, tag.index);
      continue;
    }
    if (tag[0] === "<tool_call>") {
      if (open) finish(open, tag.index);
      open = begin(tag.index);
    } else if (tag[0] === "</tool_call>") {
      if (open) finish(open, end);
    } else if (tag[1] !== undefined) {
      if (open && open.name !== null) finish(open, tag.index);
      open ??= begin(tag.index);
      open.name = tag[1].trim();
    } else if (!open) {
      // A stray tag is content.
    } else if (tag[2] !== undefined) {
      open.parameter = { key: tag[2].trim(), start: end };
    } else if (tag[0] === "</parameter>") {
      if (!open.parameter) open.error ??= "</parameter> without <parameter=...>";
      else open.values.set(open.parameter.key, trimLineBreaks(text.slice(open.parameter.start, tag.index)));
      open.parameter = null;
    } else {
      open.closed = true;
      // Without the outer tag the function's end is the call's.
      if (!text.startsWith("<tool_call>", open.from)) finish(open, end);
    }
  }
  if (open) finish(open, text.length);
  content.push(text.slice(copied));
  return { content: content.join(""), calls };
};

/**
 * The XML format of Qwen3-Coder: `<tool_call><function=name><parameter=key>value</parameter></function></tool_call>`.
 * The outer tag may be missing. A value is everything up to `</parameter>`, less one line break on either side, and
 * gets the type that the tool's schema asks for.
 */
export const qwen3Coder = defineToolFormat({
  name: "qwen3_coder",
  parse,
  callStart,
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => {
      const name = bareName(tool, /^[^<>\s]+$/);
      const parameters = parametersGrammar(turn.writer, tool);
      return `${literal(`<tool_call>\n<function=${name}>\n`)} ${parameters} ${literal("</function>\n</tool_call>")}`;
    });
    return inRow(call, NEWLINE, turn);
  },
});

function makeXmlCall(call: OpenCall, tools: readonly ToolSchema[]): ParsedToolCall {
  if (!call.name) return makeMalformedCall(`no <function=name>; expected ${SHAPE}`);
  if (call.parameter) {
    return makeMalformedCall(`parameter "${call.parameter.key}" is not closed: </parameter> is missing`, call.name);
  }
  if (call.error) return makeMalformedCall(call.error, call.name);
  if (!call.closed) return makeMalformedCall("unterminated tool call: </function> is missing", call.name);
  const schema = tools.find((tool) => tool.function.name === call.name)?.function.parameters ?? {};
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const values = [...call.values].map(([key, text]) => {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
    return [key, typeBySchema(text, property, schema)] as const;
  });
  return { name: call.name, arguments: Object.fromEntries(values) };
}

function trimLineBreaks(text: string): string {
  return text.replace(/^\r?\n/, "").replace(/\r?\n$/, "");
}
