import { inRow, jsonCall, writeCalls } from "../grammar/turn-grammar.js";
import { type BareJsonOptions, findBareStart, parseBareJson } from "../parsers/bare-json.js";
import { defineToolFormat } from "./tool-format.js";

const options: BareJsonOptions = {
  shape: '{"name": ..., "parameters": {...}}',
  before: ["<|python_tag|>"],
  after: ["<|eom_id|>", "<|eot_id|>"],
  lists: false,
};

/**
 * The JSON format of Llama 3.x: `{"name": ..., "parameters": {...}}`, after `<|python_tag|>` or without it, several
 * separated by `;`.
 */
export const llama3Json = defineToolFormat({
  name: "llama3_json",
  parse: (text) => parseBareJson(text, options),
  callStart: findBareStart(options),
  grammar: (turn) => {
    const call = writeCalls(turn, (tool) => jsonCall(turn.writer, tool, "parameters"));
    return inRow(call, '";" " "?', turn);
  },
  detectionRank: 1,
});
