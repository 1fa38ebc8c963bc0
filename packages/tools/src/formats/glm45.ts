import { findMarks } from "../parsers/call-start.js";
import { parseMarkedCalls } from "../parsers/marked-calls.js";
import { GlmNotation } from "./glm-format.js";
import { defineToolFormat } from "./tool-format.js";

const OPEN = "<tool_call>";

const notation = new GlmNotation({
  open: OPEN,
  nameEnd: "",
  key: "<arg_key>",
  keyEnd: "</arg_key>",
  value: "<arg_value>",
  valueEnd: "</arg_value>",
  close: "</tool_call>",
});

/**
 * The format of GLM 4.5 and later: `<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>`, up to 4.6 with
 * line breaks between the tags. A value is everything up to `</arg_value>`, and gets the type that the tool's schema asks for.
 */
export const glm45 = defineToolFormat({
  name: "glm45",
  aliases: ["glm46", "glm47"],
  parse: (text, tools = []) => parseMarkedCalls(text, [OPEN], (start) => notation.read(text, start, tools)),
  example: /<tool_call>[^<>"]{1,200}<arg_key>/,
  callStart: findMarks([OPEN]),
  grammar: notation.grammar,
});
