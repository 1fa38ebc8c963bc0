import { anyOf, literal } from "../grammar/grammar-writer.js";
import { type ParameterForm, parametersGrammar } from "../grammar/parameters-grammar.js";
import { bareName, writeCalls } from "../grammar/turn-grammar.js";
import { type CallTags, TaggedCalls } from "../parsers/tagged-calls.js";
import { defineToolFormat } from "./tool-format.js";

const open = (tag: string) => `<｜DSML｜${tag}>`;
const close = (tag: string) => `</｜DSML｜${tag}>`;

const tags: CallTags = {
  outer: ["function_calls", "tool_calls"].map((tag) => [open(tag), close(tag)]),
  function: { before: '<｜DSML｜invoke name="', after: ['">'] },
  functionEnd: close("invoke"),
  parameter: { before: '<｜DSML｜parameter name="', after: ['" string="true">', '" string="false">'] },
  parameterEnd: close("parameter"),
  hasOwnLines: false,
  readType: (after) => (after.includes("true") ? "text" : "json"),
  shape: `<｜DSML｜invoke name="name"><｜DSML｜parameter name="key" string="true">value${close("parameter")}${close("invoke")}`,
};
const parameter: ParameterForm = {
  open: (key, type) => literal(`<｜DSML｜parameter name="${key}" string="${type === "string"}">`),
  close: () => literal(`${tags.parameterEnd}\n`),
  closeTag: tags.parameterEnd,
  keys: /^[^<>"\n]{1,200}$/,
  saysType: true,
};
const reader = new TaggedCalls(tags);

/**
 * The XML format of DeepSeek V3.2: calls `<｜DSML｜invoke name="name"><｜DSML｜parameter name="key" string="true">value
 * </｜DSML｜parameter></｜DSML｜invoke>` in one pair of `<｜DSML｜function_calls>` tags, of `<｜DSML｜tool_calls>` for V4.
 * A value is everything up to its closing tag: a text where the tag says `string="true"`, else JSON.
 */
export const deepseekV32 = defineToolFormat({
  name: "deepseek_v32",
  aliases: ["deepseek_v4"],
  parse: (text, tools = []) => reader.parse(text, tools),
  callStart: { candidate: /</, look: (text, at) => reader.look(text, at) },
  // Two generations; a model knows one of the outer tags.
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => {
      const name = literal(`<｜DSML｜invoke name="${bareName(tool, /^[^<>"\s]+$/)}">\n`);
      return `${name} ${parametersGrammar(turn.writer, tool, parameter)} ${literal(`${tags.functionEnd}\n`)}`;
    });
    const calls = `${call}${turn.isParallel ? "+" : ""}`;
    return anyOf(tags.outer.map(([before, after]) => `${literal(`${before}\n`)} ${calls} ${literal(after)}`));
  },
});
