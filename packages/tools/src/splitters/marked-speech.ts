import { type CallStartFinder, noCallStart, skipMarks } from "../parsers/call-start.js";
import { dropMarks } from "../parsers/marked-calls.js";
import type { ParsedTurn, ToolParser } from "../parsers/tool-parser.js";
import { TagSplitter } from "./tag-splitter.js";
import type { TurnReader } from "./turn-reader.js";

/** Parts of a format whose turns have marks around their words, which nobody says. */
export interface MarkedSpeech {
  parse: ToolParser;
  callStart: CallStartFinder;
  withoutCalls: TurnReader;
}

/**
 * Adds marks around words to a reader of calls: they are no part of what is said, and a template, which prints them itself, is given words and
 * thoughts in fields.
 */
export function markSpeech(marks: readonly string[], parse: ToolParser, callStart: CallStartFinder): MarkedSpeech {
  const speech = skipMarks(noCallStart, marks);
  const split: TurnReader["split"] = (onSpoken) => new TagSplitter(speech, onSpoken);
  const read = ({ content, calls }: ParsedTurn): ParsedTurn => {
    const spoken = { reasoning: "", text: "" };
    const splitter = split((kind, text) => {
      spoken[kind] += text;
    });
    splitter.push(content);
    const text = spoken.text + content.slice(splitter.finish());
    const reasoning = spoken.reasoning.trim();
    const message = { content: text.trim(), ...(reasoning === "" ? {} : { reasoning_content: reasoning }) };
    return { content: dropMarks(content, marks), calls, message };
  };
  return {
    parse: (text, tools = []) => read(parse(text, tools)),
    callStart: skipMarks(callStart, marks),
    withoutCalls: { parse: (text) => read({ content: text, calls: [] }), split },
  };
}
