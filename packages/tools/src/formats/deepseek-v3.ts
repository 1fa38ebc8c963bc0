import { literal } from "../grammar/grammar-writer.js";
import { argumentsOf, bareName, inRow, NEWLINE, writeCalls } from "../grammar/turn-grammar.js";
import { findMarks } from "../parsers/call-start.js";
import { findJsonEnd, jsonProblems, skipSpace } from "../parsers/json-span.js";
import { keepText, makeMalformedCall } from "../parsers/make-call.js";
import { findOutsideThinking } from "../parsers/thinking.js";
import type { ParsedToolCall, ToolParser } from "../parsers/tool-parser.js";
import { defineToolFormat } from "./tool-format.js";

const LIST_BEGIN = "<｜tool▁calls▁begin｜>";
const LIST_END = "<｜tool▁calls▁end｜>";
const BEGIN = "<｜tool▁call▁begin｜>";
const SEPARATOR = "<｜tool▁sep｜>";
const END = "<｜tool▁call▁end｜>";
const SHAPE = `${BEGIN}name${SEPARATOR}{...}${END}`;
/** Longest name, in characters: a longer one is not a call, and is not searched further. */
const LONGEST_NAME = 200;

const parse: ToolParser = (text) => {
  const calls: ParsedToolCall[] = [];
  const content: string[] = [];
  let at = 0;
  for (;;) {
    const open = findOutsideThinking(text, BEGIN, at);
    if (open < 0) break;
    content.push(dropListMarks(text.slice(at, open)));
    const { call, end } = readCall(text, open + BEGIN.length);
    calls.push(...keepText([call], text.slice(open, end)));
    at = end;
  }
  const rest = text.slice(at);
  content.push(calls.length > 0 ? dropListMarks(rest) : rest);
  return { content: content.join(""), calls };
};

/**
 * The formats of DeepSeek V3, R1 and V3.1, between `<｜tool▁calls▁begin｜>` and `<｜tool▁calls▁end｜>`. V3 and R1 write
 * `<｜tool▁call▁begin｜>function<｜tool▁sep｜>name`, then the arguments in a JSON fence; V3.1 writes
 * `<｜tool▁call▁begin｜>name<｜tool▁sep｜>{...}`. Both end with `<｜tool▁call▁end｜>`.
 */
export const deepseekV3 = defineToolFormat({
  name: "deepseek_v3",
  aliases: ["deepseek_v31"],
  parse,
  callStart: findMarks([BEGIN, LIST_BEGIN, LIST_END]),
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => {
      const name = bareName(tool, /^[^\s<>｜]+$/);
      const args = argumentsOf(turn.writer, tool);
      const plain = `${literal(`${name}${SEPARATOR}`)} ${args}`;
      const fenced = `${literal(`function${SEPARATOR}${name}\n\`\`\`json\n`)} ${args} ${literal("\n```")}`;
      return `${literal(BEGIN)} (${plain} | ${fenced}) ${literal(END)}`;
    });
    return `${literal(LIST_BEGIN)} ${inRow(call, `${NEWLINE}?`, turn)} ${literal(LIST_END)}`;
  },
});

/** Reads the text after the mark of a call. `end` is the index at which the search for the next call continues. */
function readCall(text: string, start: number): { call: ParsedToolCall; end: number } {
  const separator = text.slice(start, start + LONGEST_NAME + SEPARATOR.length).indexOf(SEPARATOR);
  if (separator < 0) return endBroken(text, start, `no name; expected ${SHAPE}`);
  const head = text.slice(start, start + separator).trim();
  const body = skipSpace(text, start + separator + SEPARATOR.length);
  if (text[body] === "{") return readArguments(text, body, head);
  const line = /^([^\n]{1,200})\n\s{0,20}(?:```(?:json)?)?/.exec(text.slice(body, body + 2 * LONGEST_NAME));
  const name = line === null ? "" : line[1]!.trim();
  const json = skipSpace(text, body + (line === null ? 0 : line[0].length));
  if (line === null || text[json] !== "{") return endBroken(text, body, `no arguments; expected ${SHAPE}`, name);
  return readArguments(text, json, name);
}

function readArguments(text: string, start: number, name: string): { call: ParsedToolCall; end: number } {
  if (name === "") return endBroken(text, start, `no name; expected ${SHAPE}`);
  const span = findJsonEnd(text, start);
  if (!span.ok) return endBroken(text, start, `${jsonProblems[span.reason]}; expected ${SHAPE}`, name);
  const behind = skipSpace(text, span.end);
  const end = text.startsWith("```", behind) ? skipSpace(text, behind + 3) : behind;
  if (!text.startsWith(END, end)) return endBroken(text, span.end, `${END} is missing`, name);
  try {
    const args = JSON.parse(text.slice(start, span.end)) as Record<string, unknown>;
    return { call: { name, arguments: args }, end: end + END.length };
  } catch (error) {
    const reason = `not valid JSON: ${(error as Error).message}; expected ${SHAPE}`;
    return { call: makeMalformedCall(reason, name), end: end + END.length };
  }
}

/** Ends a broken call at the next mark that ends or begins one, since a later call may be right. */
function endBroken(text: string, from: number, reason: string, name = ""): { call: ParsedToolCall; end: number } {
  const marks = new RegExp(`${BEGIN}|${END}|${LIST_END}`, "g");
  marks.lastIndex = from;
  const next = marks.exec(text);
  const end = next === null ? text.length : next.index + (next[0] === END ? END.length : 0);
  return { call: makeMalformedCall(reason, name), end };
}

/** Drops the marks around the list and white space between calls: neither is content. */
function dropListMarks(text: string): string {
  const rest = text.replace(LIST_BEGIN, "").replace(LIST_END, "");
  return /^\s*$/.test(rest) ? "" : rest;
}
