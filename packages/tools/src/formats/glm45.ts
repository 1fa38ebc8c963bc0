import type { ToolSchema } from "@cria/core";
import { literal } from "../grammar/grammar-writer.js";
import { type ParameterForm, parametersGrammar } from "../grammar/parameters-grammar.js";
import { bareName, inRow, NEWLINE, writeCalls } from "../grammar/turn-grammar.js";
import { findMarks } from "../parsers/call-start.js";
import { skipSpace } from "../parsers/json-span.js";
import { makeMalformedCall } from "../parsers/make-call.js";
import { type CallBlock, findNextMark, parseMarkedCalls } from "../parsers/marked-calls.js";
import { typeArguments } from "../parsers/type-by-schema.js";
import { defineToolFormat } from "./tool-format.js";

const OPEN = "<tool_call>";
const CLOSE = "</tool_call>";
const KEY = "<arg_key>";
const KEY_END = "</arg_key>";
const VALUE = "<arg_value>";
const VALUE_END = "</arg_value>";
const SHAPE = `${OPEN}name${KEY}key${KEY_END}${VALUE}value${VALUE_END}${CLOSE}`;
/** Longest name, of a tool or a parameter, in characters: a longer one is not searched further. */
const LONGEST_NAME = 200;

const parameter: ParameterForm = {
  open: (key) => `${literal(KEY + key + KEY_END)} ${NEWLINE}? ${literal(VALUE)}`,
  close: () => `${literal(VALUE_END)} ${NEWLINE}?`,
  closeTag: VALUE_END,
  keys: /^[^<>\n]{1,200}$/,
};

/**
 * The format of GLM 4.5 and later: `<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>`, up to 4.6 with
 * line breaks between the tags. A value is everything up to `</arg_value>`, and gets the type that the tool's schema asks for.
 */
export const glm45 = defineToolFormat({
  name: "glm45",
  aliases: ["glm46", "glm47"],
  parse: (text, tools = []) => parseMarkedCalls(text, [OPEN], (start) => readBlock(text, start, tools)),
  example: /<tool_call>[^<>"]{1,200}<arg_key>/,
  callStart: findMarks([OPEN]),
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => {
      const name = literal(OPEN + bareName(tool, /^[^<>{}\s]+$/));
      return `${name} ${NEWLINE}? ${parametersGrammar(turn.writer, tool, parameter)} ${literal(CLOSE)}`;
    });
    return inRow(call, `${NEWLINE}?`, turn);
  },
});

function readBlock(text: string, start: number, tools: readonly ToolSchema[]): CallBlock {
  const head = /^\s{0,20}([^<>{}\s]{1,200})\s{0,20}(?=<)/.exec(text.slice(start, start + LONGEST_NAME + 50));
  if (head === null) return endBroken(text, start, "no name");
  const name = head[1]!;
  const values: [key: string, text: string][] = [];
  for (let at = start + head[0].length; ; ) {
    if (text.startsWith(CLOSE, at))
      return { calls: [{ name, arguments: typeArguments(name, values, tools) }], end: at + CLOSE.length };
    if (!text.startsWith(KEY, at)) return endBroken(text, at, `${CLOSE} is missing`, name);
    const from = at + KEY.length;
    const length = text.slice(from, from + LONGEST_NAME + KEY_END.length).indexOf(KEY_END);
    if (length < 0) return endBroken(text, at, `${KEY_END} is missing`, name);
    const value = skipSpace(text, from + length + KEY_END.length);
    const key = text.slice(from, from + length).trim();
    if (!text.startsWith(VALUE, value)) return endBroken(text, value, `no ${VALUE} for "${key}"`, name);
    const end = text.indexOf(VALUE_END, value);
    if (end < 0)
      return endBroken(text, text.length, `the value of "${key}" is not closed: ${VALUE_END} is missing`, name);
    values.push([key, text.slice(value + VALUE.length, end)]);
    at = skipSpace(text, end + VALUE_END.length);
  }
}

/** A broken call ends at the next tag that ends or begins one: a later call may be right. */
function endBroken(text: string, from: number, reason: string, name = ""): CallBlock {
  const { mark, at } = findNextMark(text, [OPEN, CLOSE], from);
  return {
    calls: [makeMalformedCall(`${reason}; expected ${SHAPE}`, name)],
    end: at + (mark === CLOSE ? mark.length : 0),
  };
}
