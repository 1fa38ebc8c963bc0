import { anyOf, literal } from "../grammar/grammar-writer.js";
import { inRow, jsonCall, NEWLINE } from "../grammar/turn-grammar.js";
import { findMarks } from "../parsers/call-start.js";
import { type JsonBlock, readJsonBlock } from "../parsers/json-block.js";
import { makeCall } from "../parsers/make-call.js";
import { parseMarkedCalls } from "../parsers/marked-calls.js";
import { defineToolFormat } from "./tool-format.js";

const SHAPE = '[{"name": ..., "arguments": {...}}]';

/** Each family's tags. */
const blocks = ["tool_calls", "TOOLCALL"].map((tag): JsonBlock => {
  const [open, close] = [`<${tag}>`, `</${tag}>`];
  const shape = open + SHAPE + close;
  return { open, close, hasRows: true, shape, readItem: (item) => makeCall(item, shape) };
});
const opens = blocks.map(({ open }) => open);

/**
 * Lists of JSON calls in one pair of tags: `<tool_calls>[{"name": ..., "arguments": {...}}]</tool_calls>` of Apriel, `<TOOLCALL>[...]
 * </TOOLCALL>` of Nemotron Nano v2, and `<tool_calls>` with a call on each line, of MiniMax-M1.
 */
export const apriel = defineToolFormat({
  name: "apriel",
  aliases: ["nemotron_v2", "minimax_m1"],
  parse: (text) =>
    parseMarkedCalls(text, opens, (start, { mark }) =>
      readJsonBlock(text, start, blocks.find(({ open }) => open === mark)!),
    ),
  callStart: findMarks(opens),
  // A list in one of the tags, or lines. A model knows one of them.
  grammar: (turn) => {
    const { writer, called } = turn;
    const call = writer.rule("call", anyOf(called.map((tool) => jsonCall(writer, tool))));
    const lists = blocks.map(({ open, close }) => {
      return `${literal(`${open}[`)} ${inRow(call, '"," " "?', turn)} ${literal(`]${close}`)}`;
    });
    const [{ open, close }] = blocks as [JsonBlock];
    return anyOf([...lists, `${literal(`${open}\n`)} ${inRow(call, NEWLINE, turn)} ${literal(`\n${close}`)}`]);
  },
});
