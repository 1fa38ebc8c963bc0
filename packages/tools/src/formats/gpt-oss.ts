import { literal } from "../grammar/grammar-writer.js";
import { argumentsOf, bareName, writeCalls } from "../grammar/turn-grammar.js";
import { harmonyMarks, readHarmonyHead } from "../parsers/harmony.js";
import { findJsonEnd, jsonProblems, skipSpace } from "../parsers/json-span.js";
import { keepText, makeMalformedCall } from "../parsers/make-call.js";
import type { ParsedToolCall, ToolParser } from "../parsers/tool-parser.js";
import { HarmonySplitter } from "../splitters/harmony-splitter.js";
import type { TurnReader } from "../splitters/turn-reader.js";
import { defineToolFormat } from "./tool-format.js";

const { start: START, message: MESSAGE } = harmonyMarks;
const SHAPE = "<|start|>assistant<|channel|>commentary to=functions.name <|constrain|>json<|message|>{...}<|call|>";

interface HarmonyMessage {
  /** Indices of its beginning and end in the text; the marks lie between them. */
  from: number;
  to: number;
  channel: string;
  /** Addressee, "" for the user. */
  recipient: string;
  body: string;
}

const parse: ToolParser = (text) => {
  const calls: ParsedToolCall[] = [];
  const content: string[] = [];
  const thoughts: string[] = [];
  const said: string[] = [];
  for (const message of listMessages(text)) {
    const { channel, recipient, body } = message;
    const isCall = recipient.startsWith("functions.");
    if (isCall) calls.push(...keepText([readCall(message)], text.slice(message.from, message.to)));
    else content.push(text.slice(message.from, message.to));
    if (isCall) continue;
    if (channel === "final" || channel === "") said.push(body);
    else thoughts.push(body);
  }
  // A template takes either words or thoughts together with a call.
  const spoken = calls.length > 0 ? [] : said;
  const reasoning = (calls.length > 0 ? [...thoughts, ...said] : thoughts).join("\n");
  const message = { content: spoken.join("\n"), ...(reasoning === "" ? {} : { reasoning_content: reasoning }) };
  return { content: content.join(""), calls, message };
};

const split: TurnReader["split"] = (onSpoken) => new HarmonySplitter(onSpoken);

/**
 * Harmony, the format of gpt-oss: a turn is a list of messages on the channels analysis, commentary and final. One on
 * commentary that is addressed to `functions.name` is a call. The first header may lack `<|start|>assistant`, which the
 * generation prompt has said; the turn's last end mark is not part of its text.
 */
export const gptOss = defineToolFormat({
  name: "gpt_oss",
  aliases: ["gpt-oss", "openai"],
  parse,
  split,
  withoutCalls: { parse: (text) => ({ ...parse(text), calls: [] }), split },
  // The header begins where the generation prompt ends, and the token <|call|> ends the turn.
  grammar: (turn) =>
    writeCalls(turn, (tool) => {
      const name = bareName(tool, /^[^\s<]+$/);
      const header = `<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>`;
      return `${literal(header)} ${argumentsOf(turn.writer, tool, true)}`;
    }),
});

function* listMessages(text: string): Generator<HarmonyMessage> {
  const ends = /<\|(?:end|call|return)\|>|<\|start\|>/g;
  for (let from = 0; from < text.length; ) {
    const header = skipSpace(text, from);
    ends.lastIndex = text.startsWith(START, header) ? header + START.length : header;
    const end = ends.exec(text);
    const to = end === null ? text.length : end.index + (end[0] === START ? 0 : end[0].length);
    const whole = text.slice(from, end?.index ?? text.length);
    const split = whole.indexOf(MESSAGE);
    const head = split < 0 ? "" : whole.slice(0, split);
    yield {
      from,
      to: Math.max(to, from + 1),
      ...readHarmonyHead(head),
      body: split < 0 ? whole : whole.slice(split + MESSAGE.length),
    };
    from = Math.max(to, from + 1);
  }
}

function readCall({ channel, recipient, body }: HarmonyMessage): ParsedToolCall {
  const name = recipient.slice("functions.".length);
  if (name === "") return makeMalformedCall(`no name; expected ${SHAPE}`);
  if (channel !== "commentary") return makeMalformedCall(`calls go to the channel commentary; expected ${SHAPE}`, name);
  const start = skipSpace(body, 0);
  if (start === body.length) return { name, arguments: {} };
  if (body[start] !== "{") return makeMalformedCall(`arguments are not an object; expected ${SHAPE}`, name);
  const span = findJsonEnd(body, start);
  if (!span.ok) return makeMalformedCall(`${jsonProblems[span.reason]}; expected ${SHAPE}`, name);
  if (skipSpace(body, span.end) < body.length)
    return makeMalformedCall(`text behind the JSON; expected ${SHAPE}`, name);
  try {
    return { name, arguments: JSON.parse(body.slice(start, span.end)) as Record<string, unknown> };
  } catch (error) {
    return makeMalformedCall(`not valid JSON: ${(error as Error).message}; expected ${SHAPE}`, name);
  }
}
