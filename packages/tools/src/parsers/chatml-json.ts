import { parseBareJson } from "./bare-json.js";
import type { ToolParser } from "./tool-parser.js";

/**
 * JSON calls in a ChatML turn without tags of their own: `{"name": ..., "arguments": {...}}`, a list of them, or the
 * OpenAI message's `{"tool_calls": [...]}`; bare or in a json fence.
 */
export const parseChatmlJson: ToolParser = (text) =>
  parseBareJson(text, {
    shape: '{"name": ..., "arguments": {...}}',
    before: ["```json", "```"],
    after: ["```", "<|im_end|>"],
    lists: true,
  });
