import { escapePattern } from "./escape-pattern.js";
import { skipSpace } from "./json-span.js";

/** Tags around a model's thinking: no text between them is a call. */
export const thinkingTags = [
  { open: "<think>", close: "</think>" },
  { open: "[THINK]", close: "[/THINK]" },
  // Seed-OSS.
  { open: "<seed:think>", close: "</seed:think>" },
  // Gemma 4.
  { open: "<|channel>thought", close: "<channel|>" },
  // Kimi K3.
  { open: "<|open|>think<|sep|>", close: "<|close|>think<|sep|>" },
  // MiniMax-M3.
  { open: "<mm:think>", close: "</mm:think>" },
  // Cohere's Command.
  { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
  // Hy3.
  { open: "<think:opensource>", close: "</think:opensource>" },
  // Solar Open.
  { open: "<|think|>", close: "<|end|>" },
  // Apertus.
  { open: "<|inner_prefix|>", close: "<|inner_suffix|>" },
];

/** Matches a tag that opens thinking. */
export const thinkingPattern = new RegExp(thinkingTags.map(({ open }) => escapePattern(open)).join("|"));

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

/** The tag that opens thinking at the end of a text, with the white space behind it; "" when none opens there. */
export function findOpenThinking(text: string): string {
  const tag = thinkingTags.find(({ open }) => text.trimEnd().endsWith(open));
  return tag ? text.slice(text.lastIndexOf(tag.open)) : "";
}

/** A mark, and where it stands. */
export interface FoundMark {
  mark: string;
  at: number;
}

/**
 * The first of the marks at or after `from`, outside of thinking; null when there is none. Searches that each start after the
 * last find take linear time together.
 * @param marks texts, or the source of a pattern.
 */
export function findOutsideThinking(text: string, marks: readonly string[] | string, from: number): FoundMark | null {
  const source = typeof marks === "string" ? marks : marks.map(escapePattern).join("|");
  const pattern = new RegExp(`${thinkingPattern.source}|${source}`, "g");
  for (let at = from; ; ) {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (!found) return null;
    at = skipThinking(text, found.index);
    if (at === found.index) return { mark: found[0], at };
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
