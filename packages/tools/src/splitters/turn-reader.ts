import { noCallStart } from "../parsers/call-start.js";
import type { ToolParser } from "../parsers/tool-parser.js";
import { TagSplitter } from "./tag-splitter.js";
import type { OnSpoken, TurnSplitter } from "./turn-splitter.js";

/** How the text of a turn is read. */
export interface TurnReader {
  /** Reads the calls of a text. */
  readonly parse: ToolParser;
  /** Makes a splitter for a turn whose text comes in; it holds back all that `parse` may find a call in. */
  readonly split: (onSpoken: OnSpoken) => TurnSplitter;
}

/** For turns without calls: all text is content, or thinking where it stands between tags. */
export const noCalls: TurnReader = {
  parse: (text) => ({ content: text, calls: [] }),
  split: (onSpoken) => new TagSplitter(noCallStart, onSpoken),
};
