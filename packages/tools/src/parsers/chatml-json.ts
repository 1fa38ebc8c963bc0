import { type BareJsonOptions, findBareStart, parseBareJson } from "./bare-json.js";
import type { CallStartFinder } from "./call-start.js";
import type { ToolParser } from "./tool-parser.js";

const options: BareJsonOptions = {
  shape: '{"name": ..., "arguments": {...}}',
  before: ["```json", "```"],
  after: ["```", "<|im_end|>"],
  lists: true,
};

/**
 * JSON calls in a ChatML turn without tags of their own: `{"name": ..., "arguments": {...}}`, a list of them, or the
 * OpenAI message's `{"tool_calls": [...]}`; bare or in a json fence.
 */
export const parseChatmlJson: ToolParser = (text) => parseBareJson(text, options);

export const findChatmlStart: CallStartFinder = findBareStart(options);
