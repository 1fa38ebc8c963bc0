import { literal } from "../grammar/grammar-writer.js";
import { argumentsOf, bareName, inRow, writeCalls } from "../grammar/turn-grammar.js";
import { findListedStart, type ListedForm, parseListedCalls } from "../parsers/listed-calls.js";
import { defineToolFormat } from "./tool-format.js";

const BEGIN = "<|tool_call_begin|>";
const SEPARATOR = "<|tool_call_argument_begin|>";
const END = "<|tool_call_end|>";

const form: ListedForm = {
  listBegin: "<|tool_calls_section_begin|>",
  listEnd: "<|tool_calls_section_end|>",
  begin: BEGIN,
  separator: SEPARATOR,
  end: END,
  shape: `${BEGIN}functions.name:0${SEPARATOR}{...}${END}`,
  readHead: (_text, head, start) => {
    const [, name = "", number] = /^(?:functions\.)?(.*?)(?::(\d{1,9}))?$/s.exec(head)!;
    return { name: name.trim(), start, ...(number === undefined ? {} : { id: head }) };
  },
};

/**
 * The format of Kimi K2: between `<|tool_calls_section_begin|>` and `<|tool_calls_section_end|>` calls
 * `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{...}<|tool_call_end|>`, numbered over the conversation.
 * `functions.name:0` is the call's id, too.
 */
export const kimiK2 = defineToolFormat({
  name: "kimi_k2",
  parse: (text) => parseListedCalls(text, form),
  callStart: findListedStart(form),
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => {
      const name = literal(`${BEGIN}functions.${bareName(tool, /^[^\s<>|:]+$/)}:`);
      return `${name} [0-9]{1,3} ${literal(SEPARATOR)} ${argumentsOf(turn.writer, tool)} ${literal(END)}`;
    });
    return `${literal(form.listBegin)} ${inRow(call, '""', turn)} ${literal(form.listEnd)}`;
  },
});
