import { beginsAtEnd, type CallStart, type CallStartFinder } from "./call-start.js";
import { findJsonEnd, jsonProblems, skipSpace } from "./json-span.js";
import { isRecord, keepText, makeCall, makeMalformedCall } from "./make-call.js";
import { skipThinking } from "./thinking.js";
import type { ParsedToolCall, ParsedTurn } from "./tool-parser.js";

export interface BareJsonOptions {
  /** The form that the model should have written, for error texts. */
  shape: string;
  /** Marks directly before and after the JSON that do not count as content, such as `<|python_tag|>` and fences. */
  before: readonly string[];
  after: readonly string[];
  /** True if a list of calls and `{"tool_calls": [...]}` count as calls, too. */
  lists: boolean;
}

const openingPattern = /^(\{\s{0,40}["'\w]|\[\s{0,40}\{)/;
/** Characters after a bracket that decide whether it may open a call, and whether the call begins like one. */
const OPENING_WINDOW = 50;
const CALL_WINDOW = 120;

/**
 * Parses calls written as plain JSON among text. An object is a call when it has a name and arguments (or parameters);
 * any other JSON stays content, since a model may answer in JSON. Broken JSON is a broken call when it starts like one.
 */
export function parseBareJson(text: string, options: BareJsonOptions): ParsedTurn {
  const calls: ParsedToolCall[] = [];
  const content: string[] = [];
  let copied = 0;
  let at = 0;
  const leaveOut = (from: number, to: number) => {
    content.push(stripEnd(text.slice(copied, from), options.before));
    copied = skipMark(text, to, options.after);
  };
  while (at < text.length) {
    const open = findOpening(text, at, options.lists);
    if (open < 0) break;
    const span = findJsonEnd(text, open);
    if (span.ok) {
      const found = readCalls(text.slice(open, span.end), options);
      calls.push(...keepText(found, text.slice(open, span.end)));
      if (found.length > 0) leaveOut(open, span.end);
      at = span.end;
      continue;
    }
    if (startsLikeCall(text, open)) {
      const call = makeMalformedCall(`${jsonProblems[span.reason]}; expected ${options.shape}`);
      calls.push(...keepText([call], text.slice(open, span.at)));
      leaveOut(open, span.at);
    }
    // The search never goes back into what was read, so the time stays linear.
    at = Math.max(span.at, open + 1);
  }
  content.push(text.slice(copied));
  const rest = content.join("");
  // A `;` or `,` between two calls is not content.
  return { content: calls.length > 0 && /^[\s;,]*$/.test(rest) ? "" : rest, calls };
}

/** The next bracket that may begin a call: `{` before a key, `[` before `{`. Brackets of prose are skipped. */
function findOpening(text: string, start: number, lists: boolean): number {
  for (let at = start; at < text.length; at++) {
    if (text[at] === "<" || text[at] === "[") {
      for (let end = skipThinking(text, at); end > at; end = skipThinking(text, at)) at = end;
    }
    if (text[at] !== "{" && !(lists && text[at] === "[")) continue;
    if (openingPattern.test(text.slice(at, at + OPENING_WINDOW))) return at;
  }
  return -1;
}

/** Finds the place where the first call may begin, with the mark before it, while the text still arrives. */
export function findBareStart(options: BareJsonOptions): CallStartFinder {
  return {
    // Brackets, and the first characters of the marks before them.
    candidate: /[{[<`]/,
    look: (text, at) => {
      for (const mark of options.before) {
        if (beginsAtEnd(mark, text, at)) return "wait";
        if (!text.startsWith(mark, at)) continue;
        const json = skipSpace(text, at + mark.length);
        const start = json === text.length ? "wait" : lookForJson(text, json, options);
        if (typeof start !== "number") return start;
      }
      return lookForJson(text, at, options);
    },
  };
}

function lookForJson(text: string, at: number, options: BareJsonOptions): CallStart {
  if (text[at] !== "{" && !(options.lists && text[at] === "[")) return 1;
  const window = text.slice(at, at + OPENING_WINDOW);
  if (!openingPattern.test(window)) return /^.\s*$/.test(window) && window.length < OPENING_WINDOW ? "wait" : 1;
  const span = findJsonEnd(text, at);
  if (span.ok) return readCalls(text.slice(at, span.end), options).length > 0 ? "call" : span.end - at;
  if (startsLikeCall(text, at)) return "call";
  if (span.reason === "unterminated" || text.length - at < CALL_WINDOW) return "wait";
  return Math.max(span.at - at, 1);
}

/** Reads the opening bracket and the first key, within a window. */
function startsLikeCall(text: string, open: number): boolean {
  return /^\[?\s{0,40}\{\s{0,40}["']?(name|function|tool_calls|type["']?\s?:\s?["']function)\b/.test(
    text.slice(open, open + CALL_WINDOW),
  );
}

function readCalls(json: string, options: BareJsonOptions): ParsedToolCall[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    if (!startsLikeCall(json, 0)) return [];
    return [makeMalformedCall(`not valid JSON: ${(error as Error).message}; expected ${options.shape}`)];
  }
  if (options.lists && isRecord(value) && Array.isArray(value.tool_calls)) {
    return value.tool_calls.map((item) => makeCall(item, options.shape));
  }
  const items = Array.isArray(value) ? value : [value];
  return items.every(isCall) ? items.map((item) => makeCall(item, options.shape)) : [];
}

function isCall(value: unknown): boolean {
  if (!isRecord(value)) return false;
  if (isRecord(value.function)) return isCall(value.function);
  return typeof (value.name ?? value.function) === "string" && ("arguments" in value || "parameters" in value);
}

function stripEnd(text: string, marks: readonly string[]): string {
  const trimmed = text.trimEnd();
  const mark = marks.find((candidate) => trimmed.endsWith(candidate));
  return mark === undefined ? text : trimmed.slice(0, trimmed.length - mark.length);
}

/** Index behind white space and a mark, or `start` where no mark follows. */
function skipMark(text: string, start: number, marks: readonly string[]): number {
  const at = skipSpace(text, start);
  const mark = marks.find((candidate) => text.startsWith(candidate, at));
  return mark === undefined ? start : at + mark.length;
}
