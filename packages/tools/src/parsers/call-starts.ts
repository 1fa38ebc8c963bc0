import { anyTextStart, type CallStartFinder } from "./call-start.js";
import { findChatmlStart, parseChatmlJson } from "./chatml-json.js";
import { findDeepseekStart, parseDeepseekV3 } from "./deepseek-v3.js";
import { parseGptOss } from "./gpt-oss.js";
import { findHermesStart, parseHermes } from "./hermes.js";
import { findLlama3Start, parseLlama3Json } from "./llama3-json.js";
import { findMistralStart, parseMistral } from "./mistral.js";
import { findPythonStart, parsePythonFence } from "./python-fence.js";
import { findQwen3CoderStart, parseQwen3Coder } from "./qwen3-coder.js";
import type { ToolParser } from "./tool-parser.js";

/** The format of turns without calls: all text is content. */
export const parseNoCalls: ToolParser = (text) => ({ content: text, calls: [] });

const parseGptOssSpeech: ToolParser = (text) => ({ ...parseGptOss(text), calls: [] });

/** How to read turns of a format in which nothing is a call, since there are no tools: thoughts are thoughts all the same. */
export function withoutCalls(parse: ToolParser): ToolParser {
  return isHarmony(parse) ? parseGptOssSpeech : parseNoCalls;
}

/** Whether a parser reads turns that are lists of messages, as gpt-oss writes them. */
export function isHarmony(parse: ToolParser): boolean {
  return parse === parseGptOss || parse === parseGptOssSpeech;
}

const noCallStart: CallStartFinder = { candidate: /(?!)/, look: () => 1 };

const callStarts = new Map<ToolParser, CallStartFinder>([
  [parseNoCalls, noCallStart],
  [parseHermes, findHermesStart],
  [parseQwen3Coder, findQwen3CoderStart],
  [parseLlama3Json, findLlama3Start],
  [parseChatmlJson, findChatmlStart],
  [parsePythonFence, findPythonStart],
  [parseMistral, findMistralStart],
  [parseDeepseekV3, findDeepseekStart],
]);

/**
 * How to find the first call of a turn while its text comes in. For a parser that is not built in (and for gpt-oss, whose
 * turns are no text with calls but lists of messages) any text may be a call.
 */
export function getCallStart(parse: ToolParser): CallStartFinder {
  return callStarts.get(parse) ?? anyTextStart;
}
