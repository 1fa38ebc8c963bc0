import type { ToolSchema } from "@cria/core";
import { type GrammarWriter, literal } from "../grammar/grammar-writer.js";
import { SchemaGrammar } from "../grammar/json-schema-grammar.js";
import { pairsInOrder } from "../grammar/object-grammar.js";
import { listParameters } from "../grammar/parameters-grammar.js";
import { bareName, inRow, writeCalls } from "../grammar/turn-grammar.js";
import { beginsAtEnd, type CallStartFinder } from "../parsers/call-start.js";
import { escapePattern } from "../parsers/escape-pattern.js";
import { findJsonEnd, jsonProblems, skipSpace } from "../parsers/json-span.js";
import { makeCall, makeMalformedCall } from "../parsers/make-call.js";
import { type CallBlock, findNextMark, parseMarkedCalls } from "../parsers/marked-calls.js";
import { pythonNames, readPythonCalls } from "../parsers/python-calls.js";
import type { ParsedToolCall } from "../parsers/tool-parser.js";
import { defineToolFormat } from "./tool-format.js";

const OPEN = "<|tool_call_start|>";
const CLOSE = "<|tool_call_end|>";
const SHAPE = `${OPEN}[name(key="value")]${CLOSE}`;

const { tool: NAME, argument: KEY } = pythonNames;
/** A list of calls without marks begins a line. It is known by its first call, up to the first argument's name. */
const BARE = new RegExp(
  `[ \\t]{0,20}\\[\\s{0,20}${NAME}\\(\\s{0,20}(?:${KEY}\\s{0,20}=(?=[^=])|\\)\\s{0,20}[,\\]])`,
  "y",
);
const BARE_BEGINNING = new RegExp(
  `^[ \\t]{0,20}(?:\\[\\s{0,20}(?:${NAME}(?:\\(\\s{0,20}(?:${KEY}\\s{0,20}=?|\\)\\s{0,20})?)?)?)?$`,
);
/** A few more characters than the longest match of BARE. */
const BARE_WINDOW = 600;
const START = `${escapePattern(OPEN)}|(?<![^\\n])(?=${BARE.source})`;

const callStart: CallStartFinder = {
  candidate: /[<\n]/,
  look: (text, at, isFirst) => {
    if (text.startsWith(OPEN, at)) return "call";
    if (beginsAtEnd(OPEN, text, at)) return "wait";
    if (text[at] !== "\n" && !isFirst) return 1;
    const start = text[at] === "\n" ? at + 1 : at;
    BARE.lastIndex = start;
    if (BARE.test(text)) return "call";
    const isBeginning = text.length - start < BARE_WINDOW && BARE_BEGINNING.test(text.slice(start));
    return isBeginning ? "wait" : 1;
  },
};

/**
 * Calls as a list of Python: `[name(key="value", other=1)]`. LFM2 writes it between `<|tool_call_start|>` and `<|tool_call_end|>`,
 * where it may be a list of JSON calls too. Models that are told to write such lists (Gemma 3, Llama 3.2) write it bare, on lines of
 * its own. Values are literals of Python or of JSON.
 */
export const pythonic = defineToolFormat({
  name: "pythonic",
  aliases: ["lfm2"],
  parse: (text) =>
    parseMarkedCalls(text, START, (start, { mark }) =>
      mark === OPEN ? readMarked(text, start) : readBare(text, start),
    ),
  callStart,
  // With marks, or bare; a model knows one of the two.
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => {
      const name = bareName(tool, /^[A-Za-z_][\w.-]*$/);
      return `${literal(`${name}(`)} ${writeArguments(turn.writer, tool)} ")"`;
    });
    const list = turn.writer.rule("list", `"[" ${inRow(call, '"," " "?', turn)} "]"`);
    return `${literal(OPEN)} ${list} ${literal(CLOSE)} | ${list}`;
  },
  // Text of other formats may have a line that looks like a list of calls.
  detectionRank: 1,
});

/** Reads the text after the opening mark. */
function readMarked(text: string, start: number): CallBlock {
  const list = skipSpace(text, start);
  const isJson = /^(?:\{|\[\s{0,20}\{)/.test(text.slice(list, list + 30));
  const read = isJson ? readJson(text, list) : readPython(text, list);
  const close = skipSpace(text, read.end);
  if (read.problem === null && text.startsWith(CLOSE, close)) return { calls: read.calls, end: close + CLOSE.length };
  // A broken list ends at the next mark of either kind: a later one may be right.
  const { mark, at } = findNextMark(text, [OPEN, CLOSE], read.problem === null ? read.end : start);
  const reason = `${read.problem ?? `${CLOSE} is missing`}; expected ${SHAPE}`;
  return { calls: [makeMalformedCall(reason)], end: at + (mark === CLOSE ? mark.length : 0) };
}

/** Reads a list that begins a line. If other text follows on the line, the list is text, too. */
function readBare(text: string, start: number): CallBlock | null {
  const { calls, problem, end } = readPython(text, start);
  const line = text.indexOf("\n", end);
  const lineEnd = line < 0 ? text.length : line;
  if (problem !== null) return { calls: [makeMalformedCall(`${problem}; expected [name(key="value")]`)], end: lineEnd };
  return /\S/.test(text.slice(end, lineEnd)) ? null : { calls, end: lineEnd };
}

interface ReadList {
  calls: ParsedToolCall[];
  /** Description of the error; null: none. */
  problem: string | null;
  end: number;
}

function readPython(text: string, start: number): ReadList {
  const read = readPythonCalls(text, start);
  if (!read.ok) return { calls: [], problem: read.problem, end: read.at };
  return { calls: read.calls, problem: read.calls.length === 0 ? "no call" : null, end: read.end };
}

function readJson(text: string, start: number): ReadList {
  const span = findJsonEnd(text, start);
  if (!span.ok) return { calls: [], problem: jsonProblems[span.reason], end: span.at };
  const { end } = span;
  try {
    const value: unknown = JSON.parse(text.slice(start, end));
    return { calls: [value].flat().map((item) => makeCall(item, SHAPE)), problem: null, end };
  } catch (error) {
    return { calls: [], problem: `not valid JSON: ${(error as Error).message}`, end };
  }
}

function writeArguments(writer: GrammarWriter, tool: ToolSchema): string {
  const grammar = new SchemaGrammar(writer, tool.function.parameters);
  const pairs = listParameters(grammar, tool, new RegExp(`^${KEY}$`)).map(({ key, schema, isRequired, place }) => ({
    text: `${literal(`${key}=`)} ${grammar.write(schema, place)}`,
    isRequired,
  }));
  return pairsInOrder(writer, pairs, '"," " "?') || '""';
}
