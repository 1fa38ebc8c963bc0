import { literal } from "../grammar/grammar-writer.js";
import { type ParameterForm, parametersGrammar } from "../grammar/parameters-grammar.js";
import { bareName, writeCalls } from "../grammar/turn-grammar.js";
import { type CallTags, TaggedCalls } from "../parsers/tagged-calls.js";
import { defineToolFormat } from "./tool-format.js";

const OPEN = "<minimax:tool_call>";
const CLOSE = "</minimax:tool_call>";

const tags: CallTags = {
  outer: [[OPEN, CLOSE]],
  // MiniMax-M3 has a mark before each tag.
  function: { before: '<invoke name="', after: ['">'], notBehind: "]<]minimax[>[" },
  functionEnd: "</invoke>",
  parameter: { before: '<parameter name="', after: ['">'] },
  parameterEnd: "</parameter>",
  hasOwnLines: false,
  shape: `${OPEN}<invoke name="name"><parameter name="key">value</parameter></invoke>${CLOSE}`,
};
const parameter: ParameterForm = {
  open: (key) => literal(`<parameter name="${key}">`),
  close: () => literal("</parameter>\n"),
  closeTag: tags.parameterEnd,
  keys: /^[^<>"\n]{1,200}$/,
};
const reader = new TaggedCalls(tags);

/**
 * The XML format of MiniMax-M2: calls `<invoke name="name"><parameter name="key">value</parameter></invoke>` in one pair of
 * `<minimax:tool_call>` and `</minimax:tool_call>`. A value is everything up to `</parameter>`, and gets the type that the tool's
 * schema asks for.
 */
export const minimaxM2 = defineToolFormat({
  name: "minimax_m2",
  parse: (text, tools = []) => reader.parse(text, tools),
  callStart: { candidate: /</, look: (text, at) => reader.look(text, at) },
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => {
      const name = literal(`<invoke name="${bareName(tool, /^[^<>"\s]+$/)}">\n`);
      return `${name} ${parametersGrammar(turn.writer, tool, parameter)} ${literal("</invoke>\n")}`;
    });
    return `${literal(`${OPEN}\n`)} ${call}${turn.isParallel ? "+" : ""} ${literal(CLOSE)}`;
  },
});
