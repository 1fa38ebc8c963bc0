import { findJsonEnd, jsonProblems, skipSpace } from "./json-span.js";
import { makeMalformedCall } from "./make-call.js";
import { type CallBlock, findNextMark } from "./marked-calls.js";
import type { ParsedToolCall } from "./tool-parser.js";

/** Notation of calls that are JSON between two marks: a list of them, or one. */
export interface JsonBlock {
  open: string;
  /** May be missing, where it ends the turn. */
  close: string;
  /** The expected form, for error texts. */
  shape: string;
  /** Reads one call's JSON. */
  readItem: (item: unknown) => ParsedToolCall;
}

/** Reads the JSON behind an opening mark, and the closing one where it follows. */
export function readJsonBlock(text: string, behind: number, { open, close, shape, readItem }: JsonBlock): CallBlock {
  const start = skipSpace(text, behind);
  const broken = (reason: string): CallBlock => {
    const { mark, at } = findNextMark(text, [open, close], start);
    return { calls: [makeMalformedCall(`${reason}; expected ${shape}`)], end: at + (mark === close ? mark.length : 0) };
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
  const end = skipSpace(text, span.end);
  return { calls: items.map(readItem), end: text.startsWith(close, end) ? end + close.length : span.end };
}
