import { escapePattern } from "./escape-pattern.js";
import { keepText } from "./make-call.js";
import { type FoundMark, findOutsideThinking } from "./thinking.js";
import type { ParsedToolCall, ParsedTurn } from "./tool-parser.js";

/** Calls of one stretch of text. */
export interface CallBlock {
  calls: readonly ParsedToolCall[];
  /** Index behind the stretch, where the search continues. */
  end: number;
}

/**
 * Reads a turn in which each stretch of calls begins with a mark.
 * @param marks texts, or the source of a pattern.
 * @param read reads the stretch that begins with a mark; `start` is the index behind the mark. Null: it is text.
 */
export function parseMarkedCalls(
  text: string,
  marks: readonly string[] | string,
  read: (start: number, found: FoundMark) => CallBlock | null,
): ParsedTurn {
  const calls: ParsedToolCall[] = [];
  const content: string[] = [];
  let copied = 0;
  for (let at = 0; ; ) {
    const found = findOutsideThinking(text, marks, at);
    if (found === null) return { content: content.join("") + text.slice(copied), calls };
    const start = found.at + found.mark.length;
    const block = read(start, found);
    // A pattern may match nothing but a place.
    at = block?.end ?? Math.max(start, found.at + 1);
    if (block === null) continue;
    content.push(text.slice(copied, found.at));
    calls.push(...keepText(block.calls, text.slice(found.at, block.end)));
    copied = block.end;
  }
}

/** A text without these marks, except within thoughts. */
export function dropMarks(text: string, marks: readonly string[]): string {
  return parseMarkedCalls(text, marks, (start) => ({ calls: [], end: start })).content;
}

/** The first of the marks at or after `from`, also within thoughts; an empty one at the text's end if none follows. */
export function findNextMark(text: string, marks: readonly string[], from: number): FoundMark {
  // One pattern for all marks: a search for each would read to the end for every missing mark.
  const pattern = new RegExp(marks.map(escapePattern).join("|"), "g");
  pattern.lastIndex = from;
  const found = pattern.exec(text);
  return found ? { mark: found[0], at: found.index } : { mark: "", at: text.length };
}
