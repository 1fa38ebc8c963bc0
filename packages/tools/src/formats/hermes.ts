import { literal } from "../grammar/grammar-writer.js";
import { inRow, jsonCall, NEWLINE, writeCalls } from "../grammar/turn-grammar.js";
import { findMarks } from "../parsers/call-start.js";
import { findJsonEnd, skipSpace } from "../parsers/json-span.js";
import { makeMalformedCall, readJsonCall } from "../parsers/make-call.js";
import { type CallBlock, parseMarkedCalls } from "../parsers/marked-calls.js";
import { defineToolFormat } from "./tool-format.js";

const OPEN = "<tool_call>";
const CLOSE = "</tool_call>";
const SHAPE = '<tool_call>{"name": ..., "arguments": {...}}</tool_call>';

/**
 * The format of Hermes, Qwen2.5, Qwen3, Granite 4, SmolLM3 and others: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`,
 * any number of times. The end of a call is found by its JSON, so that a string may contain the closing tag.
 */
export const hermes = defineToolFormat({
  name: "hermes",
  aliases: ["granite4", "smollm3"],
  parse: (text) => parseMarkedCalls(text, [OPEN], (start) => readBlock(text, start)),
  example: /<tool_call>\s{0,5}\{\s{0,5}"name":/,
  callStart: findMarks([OPEN]),
  grammar: (turn) => {
    const [open, close] = [literal(OPEN), literal(CLOSE)];
    const call = writeCalls(turn, (tool) => `${open} ${NEWLINE}? ${jsonCall(turn.writer, tool)} ${NEWLINE}? ${close}`);
    return inRow(call, NEWLINE, turn);
  },
});

/** Reads the text after an opening tag. `end`: where the search for the next tag continues. */
function readBlock(text: string, start: number): CallBlock {
  const json = skipSpace(text, start);
  if (text[json] === "{") {
    const span = findJsonEnd(text, json);
    if (span.ok) {
      const close = skipSpace(text, span.end);
      if (text.startsWith(CLOSE, close)) {
        return { calls: [readJsonCall(text.slice(json, span.end), SHAPE)], end: close + CLOSE.length };
      }
    } else if (span.reason === "too deep") {
      return { calls: [makeMalformedCall("nested too deeply")], end: endOfBroken(text, start).end };
    }
  }
  const { close, end } = endOfBroken(text, start);
  if (close < 0) return { calls: [makeMalformedCall(`unterminated tool call: ${CLOSE} is missing`)], end };
  const call = readJsonCall(text.slice(start, close), SHAPE);
  // Valid JSON that is no object (an array, a number) ends here too, and makeCall says so.
  return { calls: [call.error ? call : makeMalformedCall(`unexpected text; expected ${SHAPE}`)], end };
}

/** Ends a broken call at the next tag of either kind, since a later call may be right. */
function endOfBroken(text: string, start: number): { close: number; end: number } {
  const nextOpen = text.indexOf(OPEN, start);
  const limit = nextOpen < 0 ? text.length : nextOpen;
  const close = text.slice(start, limit).indexOf(CLOSE);
  return close < 0 ? { close: -1, end: limit } : { close: start + close, end: start + close + CLOSE.length };
}
