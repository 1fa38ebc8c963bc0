import { anyOf, literal } from "../grammar/grammar-writer.js";
import { inRow, jsonCall } from "../grammar/turn-grammar.js";
import { findMarks } from "../parsers/call-start.js";
import { type JsonBlock, readJsonBlock } from "../parsers/json-block.js";
import { makeCall } from "../parsers/make-call.js";
import { parseMarkedCalls } from "../parsers/marked-calls.js";
import { defineToolFormat } from "./tool-format.js";

const OPEN = "<|tool_call|>";
const CLOSE = "<|/tool_call|>";
const SHAPE = `${OPEN}[{"name": ..., "arguments": {...}}]`;

const block: JsonBlock = { open: OPEN, close: CLOSE, shape: SHAPE, readItem: (item) => makeCall(item, SHAPE) };

/**
 * The format of Granite 3, `<|tool_call|>[{"name": ..., "arguments": {...}}]`, and of Phi-4-mini, which writes
 * `<|tool_call|>{"name": ..., "arguments": {...}}<|/tool_call|>`, any number of times, or a list between these marks.
 */
export const granite = defineToolFormat({
  name: "granite",
  aliases: ["phi4_mini"],
  parse: (text) => parseMarkedCalls(text, [OPEN], (start) => readJsonBlock(text, start, block)),
  callStart: findMarks([OPEN]),
  // Granite's list, or Phi's mark for each call. A model knows one of them.
  grammar: (turn) => {
    const { writer, called, isParallel } = turn;
    const item = writer.rule("item", anyOf(called.map((tool) => jsonCall(writer, tool))));
    const list = `${literal(OPEN)} "[" ${inRow(item, '"," " "?', turn)} "]"`;
    const marked = writer.rule("call", `${literal(OPEN)} ${item} ${literal(CLOSE)}`);
    return `${list} | ${marked}${isParallel ? "+" : ""}`;
  },
});
