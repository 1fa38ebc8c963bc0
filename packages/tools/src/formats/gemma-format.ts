import type { ToolSchema } from "@cria/core";
import { GemmaGrammar } from "../grammar/gemma-grammar.js";
import { type GrammarWriter, literal } from "../grammar/grammar-writer.js";
import { bareName, inRow, writeCalls } from "../grammar/turn-grammar.js";
import { findMarks } from "../parsers/call-start.js";
import { readGemmaCall } from "../parsers/gemma-call.js";
import { skipSpace } from "../parsers/json-span.js";
import { makeMalformedCall } from "../parsers/make-call.js";
import { type CallBlock, findNextMark, parseMarkedCalls } from "../parsers/marked-calls.js";
import { defineToolFormat, type ToolFormat } from "./tool-format.js";

/** Marks that differ between the generations of Gemma. */
export interface GemmaMarks {
  open: string;
  close: string;
  /** Before and behind each string. */
  string: string;
}

/** Gemma's notation of calls, `call:name{key:value}` between two marks, strings between two marks of their own. */
export function defineGemmaFormat(name: string, marks: GemmaMarks): ToolFormat {
  const { open, close } = marks;
  return defineToolFormat({
    name,
    parse: (text) => parseMarkedCalls(text, [open], (start) => readBlock(text, start, marks)),
    callStart: findMarks([open]),
    grammar: (turn) => {
      const call = writeCalls(turn, (tool) => {
        const head = literal(`${open}call:${bareName(tool, /^[^\s{}<]+$/)}`);
        return `${head} ${writeArguments(turn.writer, tool, marks.string)} ${literal(close)}`;
      });
      return inRow(call, '""', turn);
    },
  });
}

function readBlock(text: string, start: number, { open, close, string }: GemmaMarks): CallBlock {
  const read = readGemmaCall(text, start, string);
  const end = read.ok ? skipSpace(text, read.end) : start;
  if (read.ok && text.startsWith(close, end)) return { calls: [read.call], end: end + close.length };
  const problem = read.ok ? `${close} is missing` : read.problem;
  // A broken call ends at the next mark of either kind: a later call may be right.
  const { mark, at } = findNextMark(text, [open, close], read.ok ? read.end : start);
  const reason = `${problem}; expected ${open}call:name{key:${string}text${string}}${close}`;
  return {
    calls: [makeMalformedCall(reason, read.ok ? read.call.name : read.name)],
    end: at + (mark === close ? mark.length : 0),
  };
}

function writeArguments(writer: GrammarWriter, tool: ToolSchema, mark: string): string {
  const { name, parameters } = tool.function;
  const schema = { type: "object", ...parameters };
  return new GemmaGrammar(writer, schema, mark).write(schema, `tool "${name}"`);
}
