import { literal } from "../grammar/grammar-writer.js";
import { argumentsOf, bareName, inRow, NEWLINE, writeCalls } from "../grammar/turn-grammar.js";
import { skipSpace } from "../parsers/json-span.js";
import { findListedStart, type ListedForm, parseListedCalls } from "../parsers/listed-calls.js";
import { defineToolFormat } from "./tool-format.js";

const BEGIN = "<｜tool▁call▁begin｜>";
const SEPARATOR = "<｜tool▁sep｜>";
const END = "<｜tool▁call▁end｜>";
/** Longest name, in characters: a longer one is not a call, and is not searched further. */
const LONGEST_NAME = 200;

const form: ListedForm = {
  listBegin: "<｜tool▁calls▁begin｜>",
  listEnd: "<｜tool▁calls▁end｜>",
  begin: BEGIN,
  separator: SEPARATOR,
  end: END,
  shape: `${BEGIN}name${SEPARATOR}{...}${END}`,
  readHead: (text, head, start) => {
    if (text[start] === "{") return { name: head, start, fence: "```" };
    // "function" stands before the separator, the name behind it on a line of its own.
    const line = /^([^\n]{1,200})\n\s{0,20}(?:```(?:json)?)?/.exec(text.slice(start, start + 2 * LONGEST_NAME));
    if (line === null) return { name: "", start };
    return { name: line[1]!.trim(), start: skipSpace(text, start + line[0].length), fence: "```" };
  },
};

/**
 * The formats of DeepSeek V3, R1 and V3.1, between `<｜tool▁calls▁begin｜>` and `<｜tool▁calls▁end｜>`. V3 and R1 write
 * `<｜tool▁call▁begin｜>function<｜tool▁sep｜>name`, then the arguments in a JSON fence; V3.1 writes
 * `<｜tool▁call▁begin｜>name<｜tool▁sep｜>{...}`. Both end with `<｜tool▁call▁end｜>`.
 */
export const deepseekV3 = defineToolFormat({
  name: "deepseek_v3",
  aliases: ["deepseek_v31"],
  parse: (text) => parseListedCalls(text, form),
  callStart: findListedStart(form),
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => {
      const name = bareName(tool, /^[^\s<>｜]+$/);
      const args = argumentsOf(turn.writer, tool);
      const plain = `${literal(`${name}${SEPARATOR}`)} ${args}`;
      const fenced = `${literal(`function${SEPARATOR}${name}\n\`\`\`json\n`)} ${args} ${literal("\n```")}`;
      return `${literal(BEGIN)} (${plain} | ${fenced}) ${literal(END)}`;
    });
    return `${literal(form.listBegin)} ${inRow(call, `${NEWLINE}?`, turn)} ${literal(form.listEnd)}`;
  },
});
