import { findJsonEnd, jsonProblems, skipSpace } from "./json-span.js";
import { makeMalformedCall } from "./make-call.js";
import { type CallBlock, findNextMark } from "./marked-calls.js";
import type { ParsedToolCall } from "./tool-parser.js";

/** Notation of calls that are JSON between two marks: a list of them, or one. */
export interface JsonBlock {
  open: string;
  /** May be missing, where it ends the turn. */
  close: string;
  /** True if several JSON texts may follow each other before the closing mark. */
  hasRows?: boolean;
  /** The expected form, for error texts. */
  shape: string;
  /** Reads one call's JSON. */
  readItem: (item: unknown) => ParsedToolCall;
}

/** Reads the JSON behind an opening mark, and the closing one where it follows. */
export function readJsonBlock(
  text: string,
  from: number,
  { open, close, hasRows, shape, readItem }: JsonBlock,
): CallBlock {
  const items: unknown[] = [];
  let end = skipSpace(text, from);
  const broken = (reason: string): CallBlock => {
    // A later call may be right.
    const { mark, at } = findNextMark(text, [open, close], end);
    return { calls: [makeMalformedCall(`${reason}; expected ${shape}`)], end: at + (mark === close ? mark.length : 0) };
  };
  for (let at = end; items.length === 0 || (hasRows && text[at] === "{"); at = skipSpace(text, end)) {
    if (text[at] !== "[" && text[at] !== "{") return broken("no call");
    const span = findJsonEnd(text, at);
    if (!span.ok) return broken(jsonProblems[span.reason]);
    try {
      for (const item of [JSON.parse(text.slice(at, span.end))].flat()) items.push(item);
    } catch (error) {
      return broken(`not valid JSON: ${(error as Error).message}`);
    }
    if (items.length === 0) return broken("no call");
    end = span.end;
  }
  const behind = skipSpace(text, end);
  return { calls: items.map(readItem), end: text.startsWith(close, behind) ? behind + close.length : end };
}
