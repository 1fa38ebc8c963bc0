import { anyOf, literal } from "../grammar/grammar-writer.js";
import { type ParameterForm, parametersGrammar } from "../grammar/parameters-grammar.js";
import { bareName, inRow, NEWLINE, writeCalls } from "../grammar/turn-grammar.js";
import { type CallTags, TaggedCalls } from "../parsers/tagged-calls.js";
import { defineToolFormat } from "./tool-format.js";

const tags: CallTags = {
  outer: [
    ["<tool_call>", "</tool_call>"],
    ["<seed:tool_call>", "</seed:tool_call>"],
  ],
  function: { before: "<function=", after: [">"] },
  functionEnd: "</function>",
  parameter: { before: "<parameter=", after: [">"] },
  parameterEnd: "</parameter>",
  hasOwnLines: true,
  shape: "<tool_call><function=name><parameter=key>value</parameter></function></tool_call>",
};
const parameter: ParameterForm = {
  open: (key) => literal(`<parameter=${key}>\n`),
  close: () => literal("\n</parameter>\n"),
  closeTag: tags.parameterEnd,
  keys: /^[^<>\n]{1,200}$/,
};
const reader = new TaggedCalls(tags);

/**
 * The XML format of Qwen3-Coder: `<tool_call><function=name><parameter=key>value</parameter></function></tool_call>`.
 * The outer tag may be missing, and is `<seed:tool_call>` for Seed-OSS. A value is everything up to `</parameter>`, less one
 * line break on either side, and gets the type that the tool's schema asks for.
 */
export const qwen3Coder = defineToolFormat({
  name: "qwen3_coder",
  aliases: ["seed_oss"],
  parse: (text, tools = []) => reader.parse(text, tools),
  example: /<tool_call>\s{0,5}<function=/,
  callStart: { candidate: /</, look: (text, at) => reader.look(text, at) },
  // Two families: a model knows one of the outer tags.
  grammar: (turn) => {
    const { writer } = turn;
    const called = writeCalls(turn, (tool) => {
      const name = bareName(tool, /^[^<>\s]+$/);
      return `${literal(`<function=${name}>\n`)} ${parametersGrammar(writer, tool, parameter)} ${literal("</function>")}`;
    });
    const rows = tags.outer.map(([open, close]) =>
      inRow(writer.rule("call", `${literal(`${open}\n`)} ${called} ${literal(`\n${close}`)}`), NEWLINE, turn),
    );
    return anyOf(rows);
  },
});
