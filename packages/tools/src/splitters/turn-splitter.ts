/** Thought or spoken text of the model. */
export type SpokenKind = "reasoning" | "text";

export type OnSpoken = (kind: SpokenKind, text: string) => void;

/**
 * Splits a turn's text, which comes in pieces, into thoughts and words, up to the point where the first call may begin.
 * It reports a piece as soon as no later text can change its kind. Takes time linear in the text.
 */
export interface TurnSplitter {
  push(text: string): void;
  /** Ends the text. Returns the index from which on nothing was reported: that of a call, or the text's end. */
  finish(): number;
}

/** Number of characters at a text's end that are a beginning of `mark`. */
export function countMatchingEnd(text: string, mark: string): number {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(mark.slice(0, length))) return length;
  }
  return 0;
}
