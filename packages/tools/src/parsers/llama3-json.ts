import { parseBareJson } from "./bare-json.js";
import type { ToolParser } from "./tool-parser.js";

/**
 * The JSON format of Llama 3.x: `{"name": ..., "parameters": {...}}`, after `<|python_tag|>` or without it, several
 * separated by `;`.
 */
export const parseLlama3Json: ToolParser = (text) =>
  parseBareJson(text, {
    shape: '{"name": ..., "parameters": {...}}',
    before: ["<|python_tag|>"],
    after: ["<|eom_id|>", "<|eot_id|>"],
    lists: false,
  });
