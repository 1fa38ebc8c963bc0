/**
 * What stands at a place of a text that still grows: perhaps a call from here on ("call"), what only more text can tell
 * ("wait"), or so many characters, at least 1, in which no call begins.
 */
export type CallStart = "call" | "wait" | number;

/** Finds where the first call of a turn may begin while the turn's text still comes in, so that what is before can be shown. */
export interface CallStartFinder {
  /** Matches the first character of all that `look` must see; it is also asked about the text's first character. */
  candidate: RegExp;
  /**
   * @param text the text from some place on; `at` is the index to judge, outside of thinking.
   * @param isFirst whether the whole turn begins at `at`.
   */
  look(text: string, at: number, isFirst: boolean): CallStart;
}

/** For formats whose calls begin with one of some fixed marks. */
export function findMarks(marks: readonly string[]): CallStartFinder {
  return {
    candidate: new RegExp(`[${[...new Set(marks.map((mark) => mark[0]!))].map((char) => `\\${char}`).join("")}]`),
    look: (text, at) => {
      if (marks.some((mark) => text.startsWith(mark, at))) return "call";
      return marks.some((mark) => beginsAtEnd(mark, text, at)) ? "wait" : 1;
    },
  };
}

/** For turns without calls. */
export const noCallStart: CallStartFinder = { candidate: /(?!)/, look: () => 1 };

/** For parsers of users: after its first thoughts every text may be a call. */
export const anyTextStart: CallStartFinder = {
  candidate: /\S/,
  look: (text, at) => (/\S/.test(text[at]!) ? "call" : 1),
};

/** Whether all that is left of a text from `at` on is the beginning of a mark, but not all of it. */
export function beginsAtEnd(mark: string, text: string, at: number): boolean {
  return text.length - at < mark.length && mark.startsWith(text.slice(at));
}
