import { type CallStartFinder, findMarks } from "./call-start.js";
import { findJsonEnd, jsonProblems, skipSpace } from "./json-span.js";
import { makeMalformedCall } from "./make-call.js";
import { type CallBlock, findNextMark, parseMarkedCalls } from "./marked-calls.js";
import type { ParsedToolCall, ParsedTurn } from "./tool-parser.js";

/** Marks around a list of calls, and before each. */
export interface ListMarks {
  listBegin: string;
  listEnd: string;
  begin: string;
}

/** Notation of calls in a list with marks of its own: `listBegin begin head separator {...} end begin ... listEnd`. */
export interface ListedForm extends ListMarks {
  separator: string;
  end: string;
  /** The expected form, for error texts. */
  shape: string;
  /** @param head the text before the separator. @param start the index behind it. */
  readHead: (text: string, head: string, start: number) => CallHead;
}

/** The parts of a call around its arguments. */
export interface CallHead {
  /** Empty if there is none. */
  name: string;
  id?: string;
  /** Index at which the arguments' JSON should begin. */
  start: number;
  /** Text that may stand between the JSON and the mark that ends the call. */
  fence?: string;
}

/** Longest head of a call, in characters: a longer one is not a call, and is not searched further. */
const LONGEST_HEAD = 200;

/** Parses a list of calls. The marks around the list, and white space between calls, are dropped. */
export function parseListedCalls(text: string, form: ListedForm): ParsedTurn {
  return parseList(text, form, (start) => readCall(text, start, form));
}

/** The same, for calls in any notation. @param read reads a call; `start` is the index behind its mark. */
export function parseList(text: string, marksOf: ListMarks, read: (start: number) => CallBlock): ParsedTurn {
  const { listBegin, listEnd, begin } = marksOf;
  const marks = [begin, listBegin, listEnd];
  const skipFiller = (at: number) => {
    const next = skipSpace(text, at);
    return next === text.length || marks.some((mark) => text.startsWith(mark, next)) ? next : at;
  };
  const { content, calls } = parseMarkedCalls(text, marks, (start, { mark }) => {
    if (mark !== begin) return { calls: [], end: skipFiller(start) };
    const block = read(start);
    return { ...block, end: skipFiller(block.end) };
  });
  // Without a call the marks are content, too.
  return calls.length > 0 ? { content: /\S/.test(content) ? content : "", calls } : { content: text, calls };
}

export function findListedStart({ begin, listBegin, listEnd }: ListMarks): CallStartFinder {
  return findMarks([begin, listBegin, listEnd]);
}

/** Reads the text after the mark of a call. */
function readCall(text: string, start: number, form: ListedForm): CallBlock {
  const { separator, shape } = form;
  const length = text.slice(start, start + LONGEST_HEAD + separator.length).indexOf(separator);
  if (length < 0) return endBroken(text, start, form, `no name; expected ${shape}`);
  const behind = skipSpace(text, start + length + separator.length);
  const { name, ...head } = form.readHead(text, text.slice(start, start + length).trim(), behind);
  if (text[head.start] !== "{") return endBroken(text, behind, form, `no arguments; expected ${shape}`, name);
  if (name === "") return endBroken(text, behind, form, `no name; expected ${shape}`);
  return readArguments(text, { name, ...head }, form);
}

function readArguments(text: string, { name, id, start, fence }: CallHead, form: ListedForm): CallBlock {
  const { end: endMark, shape } = form;
  const span = findJsonEnd(text, start);
  if (!span.ok) return endBroken(text, start, form, `${jsonProblems[span.reason]}; expected ${shape}`, name);
  const behind = skipSpace(text, span.end);
  const isFenced = fence !== undefined && text.startsWith(fence, behind);
  const end = isFenced ? skipSpace(text, behind + fence.length) : behind;
  if (!text.startsWith(endMark, end)) return endBroken(text, span.end, form, `${endMark} is missing`, name);
  return { calls: [parseArguments(text.slice(start, span.end), name, id, shape)], end: end + endMark.length };
}

function parseArguments(json: string, name: string, id: string | undefined, shape: string): ParsedToolCall {
  try {
    return { name, arguments: JSON.parse(json) as Record<string, unknown>, ...(id === undefined ? {} : { id }) };
  } catch (error) {
    return makeMalformedCall(`not valid JSON: ${(error as Error).message}; expected ${shape}`, name);
  }
}

/** A broken call ends at the next mark that ends or begins one: a later call may be right. */
function endBroken(text: string, from: number, form: ListedForm, reason: string, name = ""): CallBlock {
  const { mark, at } = findNextMark(text, [form.begin, form.end, form.listEnd], from);
  return { calls: [makeMalformedCall(reason, name)], end: at + (mark === form.end ? mark.length : 0) };
}
