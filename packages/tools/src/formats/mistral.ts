import { anyOf, literal } from "../grammar/grammar-writer.js";
import { argumentsOf, bareName, inRow, jsonCall, writeCalls } from "../grammar/turn-grammar.js";
import { findMarks } from "../parsers/call-start.js";
import { findJsonEnd, jsonProblems, skipSpace } from "../parsers/json-span.js";
import { makeCall, makeMalformedCall } from "../parsers/make-call.js";
import { type CallBlock, findNextMark, parseMarkedCalls } from "../parsers/marked-calls.js";
import type { ParsedToolCall } from "../parsers/tool-parser.js";
import { defineToolFormat } from "./tool-format.js";

const MARK = "[TOOL_CALLS]";
const LIST_SHAPE = '[TOOL_CALLS][{"name": ..., "arguments": {...}, "id": ...}]';
const NAMED_SHAPE = "[TOOL_CALLS]name[ARGS]{...}";
/** Longest name or id, in characters: a longer one is not a call, and is not searched further. */
const LONGEST_HEAD = 300;

/**
 * Mistral's formats. Up to v7 (Mistral Nemo) a list of JSON calls follows one mark: `[TOOL_CALLS][{"name": ...,
 * "arguments": {...}, "id": ...}]`. From v11 on each call has its mark: `[TOOL_CALLS]name[CALL_ID]id[ARGS]{...}`, from
 * v13 on without the id. `[ARGS]` may be missing, since some decoders leave it out.
 */
export const mistral = defineToolFormat({
  name: "mistral",
  parse: (text) =>
    parseMarkedCalls(text, [MARK], (behind) => {
      const start = skipSpace(text, behind);
      return text[start] === "[" || text[start] === "{" ? readList(text, start) : readNamed(text, start);
    }),
  callStart: findMarks([MARK]),
  // Two generations of the format: a list of calls behind one mark, or a mark for each. A model knows one of them.
  grammar: (turn) => {
    const { writer, called, isParallel } = turn;
    const named = writeCalls(turn, (tool) => {
      const name = bareName(tool, /^[^[\]{}\s]+$/);
      return `${literal(MARK + name)} "[ARGS]"? ${argumentsOf(writer, tool)}`;
    });
    const item = writer.rule("item", anyOf(called.map((tool) => jsonCall(writer, tool))));
    const list = `${literal(MARK)} " "? "[" ${inRow(item, '"," " "?', turn)} "]"`;
    return `${list} | ${named}${isParallel ? "+" : ""}`;
  },
});

/** JSON behind the mark: a list of calls, or one. */
function readList(text: string, start: number): CallBlock {
  const span = findJsonEnd(text, start, MARK);
  if (!span.ok)
    return {
      calls: [makeMalformedCall(`${jsonProblems[span.reason]}; expected ${LIST_SHAPE}`)],
      end: findNextMark(text, [MARK], start).at,
    };
  let value: unknown;
  try {
    value = JSON.parse(text.slice(start, span.end));
  } catch (error) {
    const reason = `not valid JSON: ${(error as Error).message}; expected ${LIST_SHAPE}`;
    return { calls: [makeMalformedCall(reason)], end: span.end };
  }
  const items = Array.isArray(value) ? value : [value];
  if (items.length === 0) return { calls: [makeMalformedCall(`no call; expected ${LIST_SHAPE}`)], end: span.end };
  return { calls: items.map((item) => makeCall(item, LIST_SHAPE)), end: span.end };
}

/** A name, perhaps an id, and arguments. */
function readNamed(text: string, start: number): CallBlock {
  const json = text.slice(start, start + LONGEST_HEAD).indexOf("{");
  const head =
    json < 0
      ? null
      : /^([^[\]{}\s]+)\s*(?:\[CALL_ID\]\s*([^[\]{}\s]+)\s*)?(?:\[ARGS\]\s*)?$/.exec(text.slice(start, start + json));
  if (!head) {
    return {
      calls: [makeMalformedCall(`no name and arguments; expected ${NAMED_SHAPE}`)],
      end: findNextMark(text, [MARK], start).at,
    };
  }
  const [, name, id] = head as unknown as [string, string, string | undefined];
  const span = findJsonEnd(text, start + json, MARK);
  if (!span.ok)
    return {
      calls: [makeMalformedCall(`${jsonProblems[span.reason]}; expected ${NAMED_SHAPE}`, name)],
      end: findNextMark(text, [MARK], start).at,
    };
  const call = readArguments(text.slice(start + json, span.end), name);
  return { calls: [id === undefined || call.error ? call : { ...call, id }], end: span.end };
}

function readArguments(json: string, name: string): ParsedToolCall {
  try {
    return { name, arguments: JSON.parse(json) as Record<string, unknown> };
  } catch (error) {
    return makeMalformedCall(`not valid JSON: ${(error as Error).message}; expected ${NAMED_SHAPE}`, name);
  }
}
