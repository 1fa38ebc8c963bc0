import { literal } from "../grammar/grammar-writer.js";
import { type ParameterForm, parametersGrammar } from "../grammar/parameters-grammar.js";
import { bareName, writeCalls } from "../grammar/turn-grammar.js";
import { type CallTags, TaggedCalls } from "../parsers/tagged-calls.js";
import { markSpeech } from "../splitters/marked-speech.js";
import { defineToolFormat } from "./tool-format.js";

const SEPARATOR = "<|sep|>";
const open = (tag: string) => `<|open|>${tag}${SEPARATOR}`;
const close = (tag: string) => `<|close|>${tag}${SEPARATOR}`;

const types = ["string", "number", "boolean", "null", "object", "array"];

const tags: CallTags = {
  outer: [[open("tools"), close("tools")]],
  function: {
    before: '<|open|>call tool="',
    after: [`" index="1"${SEPARATOR}`],
    pattern: '" index="\\d{1,9}"<\\|sep\\|>',
  },
  functionEnd: close("call"),
  parameter: { before: '<|open|>argument key="', after: types.map((type) => `" type="${type}"${SEPARATOR}`) },
  parameterEnd: close("argument"),
  json: [open('json type="object"'), close("json")],
  hasOwnLines: false,
  readName: (written) => written.replaceAll("&quot;", '"').replaceAll("&amp;", "&"),
  readType: (after) => (after.includes('"string"') ? "text" : "json"),
  shape: `${open('call tool="name" index="1"')}${open('argument key="key" type="string"')}value${close("argument")}${close("call")}`,
};
const parameter: ParameterForm = {
  open: (key, type) => literal(open(`argument key="${key}" type="${type === "integer" ? "number" : type}"`)),
  close: () => literal(tags.parameterEnd),
  closeTag: tags.parameterEnd,
  keys: /^[^<>"&\n]{1,200}$/,
  saysType: true,
};
const reader = new TaggedCalls(tags);

/** Marks around thoughts, words and calls; the generation prompt has opened the message and its first part. */
const marks = [open("response"), close("response"), close("think"), close("message")];

/**
 * The format of Kimi K3: a turn is thoughts, a response and calls, each between `<|open|>name<|sep|>` and `<|close|>name<|sep|>`. Under
 * `tools` stand calls `<|open|>call tool="name" index="1"<|sep|>` with arguments `<|open|>argument key="key" type="string"<|sep|>value
 * <|close|>argument<|sep|>`: a text where the tag says `string`, else JSON. `<|open|>json type="object"<|sep|>{...}` may stand in
 * place of the arguments. A value is everything up to its closing mark. In names `&` and `"` are escaped, `<` is not, and cannot be read.
 */
export const kimiK3 = defineToolFormat({
  name: "kimi_k3",
  ...markSpeech(marks, (text, tools = []) => reader.parse(text, tools), {
    candidate: /</,
    look: (text, at) => reader.look(text, at),
  }),
  // The generation prompt has opened the thoughts, or the response where it asks for none.
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => {
      const name = bareName(tool, /^[^<>"&\s]+$/);
      const head = `${literal(`<|open|>call tool="${name}" index="`)} [1-9] [0-9]? ${literal(`"${SEPARATOR}`)}`;
      return `${head} ${parametersGrammar(turn.writer, tool, parameter)} ${literal(tags.functionEnd)}`;
    });
    const response = `(${literal(open("response"))}? ${literal(close("response"))})?`;
    const calls = `${literal(open("tools"))} ${call}${turn.isParallel ? "+" : ""} ${literal(close("tools"))}`;
    return `${response} ${calls} ${literal(close("message"))}?`;
  },
});
