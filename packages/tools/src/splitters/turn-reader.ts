import { noCallStart } from "../parsers/call-start.js";
import type { ToolParser } from "../parsers/tool-parser.js";
import { TagSplitter } from "./tag-splitter.js";
import type { OnSpoken, TurnSplitter } from "./turn-splitter.js";

/** Reads the text of a turn. */
export interface TurnReader {
  /** Finds the calls of a text. */
  readonly parse: ToolParser;
  /**
   * Makes a splitter for a turn that is still being sampled; it holds back all text in which `parse` may find a call.
   */
  readonly split: (onSpoken: OnSpoken) => TurnSplitter;
}

/** Reader of turns without calls: text between thinking tags is thoughts, all other text content. */
export const noCalls: TurnReader = {
  parse: (text) => ({ content: text, calls: [] }),
  split: (onSpoken) => new TagSplitter(noCallStart, onSpoken),
};
