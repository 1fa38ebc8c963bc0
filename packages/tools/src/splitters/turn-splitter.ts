/** What the model thinks, or what it says. */
export type SpokenKind = "reasoning" | "text";

export type OnSpoken = (kind: SpokenKind, text: string) => void;

/**
 * Splits a turn's text, which comes in pieces, into what the model thinks and what it says, up to where the first call may
 * begin. It reports a piece as soon as no text to come can change what it is. Takes time linear in the text.
 */
export interface TurnSplitter {
  push(text: string): void;
  /** Says that the text ends here. Returns the index from which on nothing was reported: a call, or the text's end. */
  finish(): number;
}

/** How many characters at a text's end are the beginning of `mark`. */
export function countMatchingEnd(text: string, mark: string): number {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(mark.slice(0, length))) return length;
  }
  return 0;
}
