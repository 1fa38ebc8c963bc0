import { type BareJsonOptions, findBareStart, parseBareJson } from "./bare-json.js";
import type { CallStartFinder } from "./call-start.js";
import type { ToolParser } from "./tool-parser.js";

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
export const parseLlama3Json: ToolParser = (text) => parseBareJson(text, options);

export const findLlama3Start: CallStartFinder = findBareStart(options);
