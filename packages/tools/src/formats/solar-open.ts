import { literal } from "../grammar/grammar-writer.js";
import { argumentsOf, bareName, inRow, writeCalls } from "../grammar/turn-grammar.js";
import { findListedStart, type ListedForm, parseListedCalls } from "../parsers/listed-calls.js";
import { markSpeech } from "../splitters/marked-speech.js";
import { defineToolFormat } from "./tool-format.js";

const BEGIN = "<|tool_call:begin|>";
const NAME = "<|tool_call:name|>";
const SEPARATOR = "<|tool_call:args|>";
const END = "<|tool_call:end|>";

const form: ListedForm = {
  listBegin: "<|tool_calls|>",
  listEnd: "<|calls|>",
  begin: BEGIN,
  separator: SEPARATOR,
  end: END,
  shape: `${BEGIN}id${NAME}name${SEPARATOR}{...}${END}`,
  readHead: (_text, head, start) => {
    const split = head.indexOf(NAME);
    if (split < 0) return { name: "", start };
    const id = head.slice(0, split).trim();
    return { name: head.slice(split + NAME.length).trim(), start, ...(id === "" ? {} : { id }) };
  },
};

/** Marks around words and between the messages of a turn. */
const marks = ["<|content|>", "<|end|>", "<|begin|>assistant"];

/**
 * The format of Solar Open: a turn is thoughts, then words or, behind `<|tool_calls|>`, calls
 * `<|tool_call:begin|>id<|tool_call:name|>name<|tool_call:args|>{...}<|tool_call:end|>`. `<|calls|>` ends a turn of calls.
 */
export const solarOpen = defineToolFormat({
  name: "solar_open",
  ...markSpeech(marks, (text) => parseListedCalls(text, form), findListedStart(form)),
  // Without thoughts the call follows the prompt, with them another message's beginning.
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => {
      const name = literal(NAME + bareName(tool, /^[^\s<>|]+$/) + SEPARATOR);
      return `${literal(BEGIN)} [a-zA-Z0-9_-]{1,40} ${name} ${argumentsOf(turn.writer, tool)} ${literal(END)}`;
    });
    return `${literal("<|begin|>assistant")}? ${literal(form.listBegin)} ${inRow(call, '""', turn)} ${literal(form.listEnd)}?`;
  },
});
