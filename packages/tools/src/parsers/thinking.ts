import { escapePattern } from "./escape-pattern.js";
import { skipSpace } from "./json-span.js";

/** Tags between which a model thinks: nothing in there is a call, whatever it looks like. */
export const thinkingTags = [
  { open: "<think>", close: "</think>" },
  { open: "[THINK]", close: "[/THINK]" },
];

/** Matches a tag that opens thinking. */
export const thinkingPattern = /<think>|\[THINK\]/;

/**
 * Index behind the thinking that opens exactly at `at`: behind its closing tag, or the end of the text where it has none.
 * `at` itself where no thinking opens.
 */
export function skipThinking(text: string, at: number): number {
  const tag = thinkingTags.find(({ open }) => text.startsWith(open, at));
  if (!tag) return at;
  const close = text.indexOf(tag.close, at + tag.open.length);
  return close < 0 ? text.length : close + tag.close.length;
}

/**
 * Index of `mark` at or after `from`, outside of thinking; -1 when there is none. Searches that each start after the
 * last find take linear time together.
 */
export function findOutsideThinking(text: string, mark: string, from: number): number {
  const pattern = new RegExp(`${thinkingPattern.source}|${escapePattern(mark)}`, "g");
  for (let at = from; ; ) {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (!found) return -1;
    if (found[0] === mark) return found.index;
    at = skipThinking(text, found.index);
  }
}

/** Index behind the thinking that a text begins with, white space around it included; 0 where it begins otherwise. */
export function findThinkingEnd(text: string): number {
  let end = 0;
  for (;;) {
    const at = skipSpace(text, end);
    const next = skipThinking(text, at);
    if (next === at) return end;
    end = next;
  }
}
