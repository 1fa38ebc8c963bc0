import { escapePattern } from "./escape-pattern.js";
import { skipSpace } from "./json-span.js";

/** Tags around a model's thinking: no text between them is a call. */
export const thinkingTags = [
  { open: "<think>", close: "</think>" },
  { open: "[THINK]", close: "[/THINK]" },
];

/** Matches a tag that opens thinking. */
export const thinkingPattern = /<think>|\[THINK\]/;

/**
 * Index after the thinking that opens exactly at `at`: after its closing tag, or the end of the text without one. `at`
 * when no thinking opens there.
 */
export function skipThinking(text: string, at: number): number {
  const tag = thinkingTags.find(({ open }) => text.startsWith(open, at));
  if (!tag) return at;
  const close = text.indexOf(tag.close, at + tag.open.length);
  return close < 0 ? text.length : close + tag.close.length;
}

/**
 * Index of `mark` at or after `from`, outside of thinking; -1 when there is none. Searches that each start after the
 * last match take linear time together.
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

/**
 * Index after the thinking at the beginning of a text, with the white space around it; 0 when the text does not begin
 * with thinking.
 */
export function findThinkingEnd(text: string): number {
  let end = 0;
  for (;;) {
    const at = skipSpace(text, end);
    const next = skipThinking(text, at);
    if (next === at) return end;
    end = next;
  }
}
