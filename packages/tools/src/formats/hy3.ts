import { literal } from "../grammar/grammar-writer.js";
import { NEWLINE } from "../grammar/turn-grammar.js";
import { findListedStart, type ListMarks, parseList } from "../parsers/listed-calls.js";
import { GlmNotation } from "./glm-format.js";
import { defineToolFormat } from "./tool-format.js";

const open = (tag: string) => `<${tag}:opensource>`;
const close = (tag: string) => `</${tag}:opensource>`;

const list: ListMarks = { listBegin: open("tool_calls"), listEnd: close("tool_calls"), begin: open("tool_call") };
const notation = new GlmNotation({
  open: list.begin,
  nameEnd: open("tool_sep"),
  key: open("arg_key"),
  keyEnd: close("arg_key"),
  value: open("arg_value"),
  valueEnd: close("arg_value"),
  close: close("tool_call"),
});

/**
 * The format of Tencent's Hy3: GLM's notation, with `:opensource` in each tag and `<tool_sep:opensource>` behind the name, in one pair of
 * `<tool_calls:opensource>` and `</tool_calls:opensource>`. A value is everything up to `</arg_value:opensource>`, and gets the type that
 * the tool's schema asks for.
 */
export const hy3 = defineToolFormat({
  name: "hy3",
  parse: (text, tools = []) => parseList(text, list, (start) => notation.read(text, start, tools)),
  callStart: findListedStart(list),
  grammar: (turn) =>
    `${literal(list.listBegin)} ${NEWLINE}? ${notation.grammar(turn)} ${NEWLINE}? ${literal(list.listEnd)}`,
});
