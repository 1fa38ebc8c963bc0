import { getCallStart, isHarmony, type ToolParser } from "@cria/tools";
import { HarmonySplitter } from "./harmony-splitter.js";
import { TagSplitter } from "./tag-splitter.js";
import type { OnSpoken, TurnSplitter } from "./turn-splitter.js";

/** The splitter for turns whose calls `parse` reads. */
export function createTurnSplitter(parse: ToolParser, onSpoken: OnSpoken): TurnSplitter {
  if (isHarmony(parse)) return new HarmonySplitter(onSpoken);
  return new TagSplitter(getCallStart(parse), onSpoken);
}
