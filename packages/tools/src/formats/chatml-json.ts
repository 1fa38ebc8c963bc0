import { inRow, jsonCall, writeCalls } from "../grammar/turn-grammar.js";
import { type BareJsonOptions, findBareStart, parseBareJson } from "../parsers/bare-json.js";
import { defineToolFormat } from "./tool-format.js";

const options: BareJsonOptions = {
  shape: '{"name": ..., "arguments": {...}}',
  before: ["```json", "```"],
  after: ["```", "<|im_end|>"],
  lists: true,
};

/**
 * JSON calls in a ChatML turn without tags around them: `{"name": ..., "arguments": {...}}`, a list of them, or the
 * OpenAI message's `{"tool_calls": [...]}`; bare or in a json fence.
 */
export const chatmlJson = defineToolFormat({
  name: "chatml-json",
  parse: (text) => parseBareJson(text, options),
  callStart: findBareStart(options),
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => jsonCall(turn.writer, tool));
    return turn.isParallel ? `${call} | "[" ${inRow(call, '"," " "?', turn)} "]"` : call;
  },
  detectionRank: 2,
});
