import { literal } from "../grammar/grammar-writer.js";
import { argumentsOf, inRow, writeCalls } from "../grammar/turn-grammar.js";
import { findMarks } from "../parsers/call-start.js";
import { type JsonBlock, readJsonBlock } from "../parsers/json-block.js";
import { isRecord, makeCall } from "../parsers/make-call.js";
import { parseMarkedCalls } from "../parsers/marked-calls.js";
import { markSpeech } from "../splitters/marked-speech.js";
import { defineToolFormat } from "./tool-format.js";

const OPEN = "<|START_ACTION|>";
const CLOSE = "<|END_ACTION|>";
const SHAPE = `${OPEN}[{"tool_call_id": "0", "tool_name": ..., "parameters": {...}}]${CLOSE}`;

const block: JsonBlock = {
  open: OPEN,
  close: CLOSE,
  shape: SHAPE,
  readItem: (item) => {
    if (!isRecord(item)) return makeCall(item, SHAPE);
    return makeCall({ name: item.tool_name, arguments: item.parameters, id: item.tool_call_id }, SHAPE);
  },
};

/** Marks around words: RESPONSE in Command R7B and A, TEXT in later ones. */
const marks = ["RESPONSE", "TEXT"].flatMap((part) => [`<|START_${part}|>`, `<|END_${part}|>`]);

/**
 * The format of Cohere's Command R7B, Command A and later: `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": ..., "parameters": {...}}]
 * <|END_ACTION|>`. A turn is thoughts and such a list, or words between marks. Ids count the conversation's calls.
 */
export const cohere = defineToolFormat({
  name: "cohere",
  aliases: ["command_r7b"],
  ...markSpeech(
    marks,
    (text) => parseMarkedCalls(text, [OPEN], (start) => readJsonBlock(text, start, block)),
    findMarks([OPEN]),
  ),
  grammar: (turn) => {
    const line = turn.writer.rule("line", '"" | "\\n" " "{0,8}');
    const call = writeCalls(turn, (tool) => {
      const head = `${literal('{"tool_call_id": "')} [0-9]{1,3} ${literal(`", "tool_name": ${JSON.stringify(tool.function.name)}`)}`;
      return `${head} ${literal(', "parameters": ')} ${argumentsOf(turn.writer, tool)} "}"`;
    });
    return `${literal(`${OPEN}[`)} ${line} ${inRow(call, `"," ${line}`, turn)} ${line} ${literal(`]${CLOSE}`)}`;
  },
});
