import { literal } from "../grammar/grammar-writer.js";
import { argumentsOf, inRow, writeCalls } from "../grammar/turn-grammar.js";
import { findMarks } from "../parsers/call-start.js";
import { type JsonBlock, readJsonBlock } from "../parsers/json-block.js";
import { isRecord, makeCall } from "../parsers/make-call.js";
import { parseMarkedCalls } from "../parsers/marked-calls.js";
import { defineToolFormat } from "./tool-format.js";

const OPEN = "<|tools_prefix|>";
const CLOSE = "<|tools_suffix|>";
const SHAPE = `${OPEN}[{"name": {...}}]${CLOSE}`;

const block: JsonBlock = {
  open: OPEN,
  close: CLOSE,
  shape: SHAPE,
  readItem: (item) => {
    const entries = isRecord(item) ? Object.entries(item) : [];
    const [name, given] = entries.length === 1 ? entries[0]! : [undefined, undefined];
    return makeCall({ name, arguments: given }, SHAPE);
  },
};

/**
 * The format of Apertus: `<|tools_prefix|>[{"name": {...}}]<|tools_suffix|>`, the arguments by the tool's name. The closing mark ends the
 * turn, and the answers follow it.
 */
export const apertus = defineToolFormat({
  name: "apertus",
  parse: (text) => parseMarkedCalls(text, [OPEN], (start) => readJsonBlock(text, start, block)),
  callStart: findMarks([OPEN]),
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => {
      return `"{" ${literal(`${JSON.stringify(tool.function.name)}: `)} ${argumentsOf(turn.writer, tool)} "}"`;
    });
    return `${literal(`${OPEN}[`)} ${inRow(call, '"," " "?', turn)} "]" ${literal(CLOSE)}?`;
  },
});
