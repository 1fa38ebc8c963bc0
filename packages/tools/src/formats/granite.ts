import { anyOf, literal } from "../grammar/grammar-writer.js";
import { inRow, jsonCall } from "../grammar/turn-grammar.js";
import { findMarks } from "../parsers/call-start.js";
import { findJsonEnd, jsonProblems, skipSpace } from "../parsers/json-span.js";
import { makeCall, makeMalformedCall } from "../parsers/make-call.js";
import { type CallBlock, findNextMark, parseMarkedCalls } from "../parsers/marked-calls.js";
import { defineToolFormat } from "./tool-format.js";

const OPEN = "<|tool_call|>";
const CLOSE = "<|/tool_call|>";
const SHAPE = `${OPEN}[{"name": ..., "arguments": {...}}]`;

/**
 * The format of Granite 3, `<|tool_call|>[{"name": ..., "arguments": {...}}]`, and of Phi-4-mini, which writes
 * `<|tool_call|>{"name": ..., "arguments": {...}}<|/tool_call|>`, any number of times, or a list between these marks.
 */
export const granite = defineToolFormat({
  name: "granite",
  aliases: ["phi4_mini"],
  parse: (text) => parseMarkedCalls(text, [OPEN], (start) => readBlock(text, skipSpace(text, start))),
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

/** Reads the JSON behind an opening mark, and the closing one where it follows. */
function readBlock(text: string, start: number): CallBlock {
  const broken = (reason: string): CallBlock => {
    const { mark, at } = findNextMark(text, [OPEN, CLOSE], start);
    return { calls: [makeMalformedCall(`${reason}; expected ${SHAPE}`)], end: at + (mark === CLOSE ? mark.length : 0) };
  };
  if (text[start] !== "[" && text[start] !== "{") return broken("no call");
  const span = findJsonEnd(text, start);
  if (!span.ok) return broken(jsonProblems[span.reason]);
  let value: unknown;
  try {
    value = JSON.parse(text.slice(start, span.end));
  } catch (error) {
    return broken(`not valid JSON: ${(error as Error).message}`);
  }
  const items = Array.isArray(value) ? value : [value];
  if (items.length === 0) return broken("no call");
  const close = skipSpace(text, span.end);
  const end = text.startsWith(CLOSE, close) ? close + CLOSE.length : span.end;
  return { calls: items.map((item) => makeCall(item, SHAPE)), end };
}
