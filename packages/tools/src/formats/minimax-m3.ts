import { literal } from "../grammar/grammar-writer.js";
import { type ParameterForm, parametersGrammar } from "../grammar/parameters-grammar.js";
import { bareName, writeCalls } from "../grammar/turn-grammar.js";
import { type ElementForm, parseElementCalls } from "../parsers/element-calls.js";
import { findListedStart } from "../parsers/listed-calls.js";
import { markSpeech } from "../splitters/marked-speech.js";
import { defineToolFormat } from "./tool-format.js";

const MARK = "]<]minimax[>[";

const form: ElementForm = {
  listBegin: `${MARK}<tool_call>`,
  listEnd: `${MARK}</tool_call>`,
  begin: `${MARK}<invoke name="`,
  mark: MARK,
  call: "invoke",
  item: "item",
  shape: `${MARK}<invoke name="name">${MARK}<key>value${MARK}</key>${MARK}</invoke>`,
};
const parameter: ParameterForm = {
  open: (key) => literal(`${MARK}<${key}>`),
  close: (key) => literal(`${MARK}</${key}>`),
  closeTag: MARK,
  keys: /^[^<>/\n][^<>\n]{0,199}$/,
  itemKey: form.item,
};

/** A turn without thoughts begins with the end of thoughts. */
const marks = ["</mm:think>"];

/**
 * The format of MiniMax-M3: calls `<invoke name="name"><key>value</key></invoke>` between `<tool_call>` and `</tool_call>`, with
 * `]<]minimax[>[` before each tag. Objects are elements in elements, lists are elements `<item>`.
 *
 * The template prints a text and a number alike, and nothing for an empty text, an empty object or list and an item that is null; it leaves
 * out properties that are null. The tool's schema says what a value is: a text where it says nothing. Names of properties cannot contain `<`, `>`, or
 * begin with `/`. Where the schema does not name what is in an object, the grammar writes that as JSON, which is read, too.
 */
export const minimaxM3 = defineToolFormat({
  name: "minimax_m3",
  ...markSpeech(marks, (text, tools = []) => parseElementCalls(text, form, tools), findListedStart(form)),
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => {
      const name = literal(`${form.begin}${bareName(tool, /^[^<>"\s]+$/)}">`);
      return `${name} ${parametersGrammar(turn.writer, tool, parameter)} ${literal(`${MARK}</invoke>\n`)}`;
    });
    return `${literal(`${form.listBegin}\n`)} ${call}${turn.isParallel ? "+" : ""} ${literal(form.listEnd)}`;
  },
});
