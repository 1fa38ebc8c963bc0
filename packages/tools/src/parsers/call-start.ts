/**
 * A judgement of one place in a growing text: a call may begin here ("call"), more text is needed to tell ("wait"),
 * no call begins in the next n characters (a number, at least 1), or these are marks of the format, which nobody says
 * (`skip`).
 */
export type CallStart = "call" | "wait" | number | { skip: number };

/**
 * Finds the place where a turn's first call may begin while the turn's text still arrives, so that the text before it
 * can be shown.
 */
export interface CallStartFinder {
  /**
   * Matches the first character of every text that `look` must see. `look` is also asked about the text's first
   * character.
   */
  candidate: RegExp;
  /**
   * @param text part of the turn's text; `at` is the index to judge, outside of thinking.
   * @param isFirst true if the whole turn begins at `at`.
   */
  look(text: string, at: number, isFirst: boolean): CallStart;
}

/** Finder for formats whose calls begin with one of some fixed marks. */
export function findMarks(marks: readonly string[]): CallStartFinder {
  return {
    candidate: new RegExp(`[${[...new Set(marks.map((mark) => mark[0]!))].map((char) => `\\${char}`).join("")}]`),
    look: (text, at) => {
      if (marks.some((mark) => text.startsWith(mark, at))) return "call";
      return marks.some((mark) => beginsAtEnd(mark, text, at)) ? "wait" : 1;
    },
  };
}

/** The finder, for turns in which marks also stand around text: they are no part of what is said. */
export function skipMarks(finder: CallStartFinder, marks: readonly string[]): CallStartFinder {
  const { candidate, look } = findMarks(marks);
  return {
    candidate: new RegExp(`${finder.candidate.source}|${candidate.source}`),
    look: (text, at, isFirst) => {
      const mark = marks.find((one) => text.startsWith(one, at));
      if (mark !== undefined) return { skip: mark.length };
      const verdict = finder.look(text, at, isFirst);
      return verdict === 1 ? look(text, at, isFirst) : verdict;
    },
  };
}

/** Finder for turns without calls. */
export const noCallStart: CallStartFinder = { candidate: /(?!)/, look: () => 1 };

/** Finder for users' parsers: any text after the turn's first thoughts may be a call. */
export const anyTextStart: CallStartFinder = {
  candidate: /\S/,
  look: (text, at) => (/\S/.test(text[at]!) ? "call" : 1),
};

/** True if the text from `at` on is a proper prefix of the mark. */
export function beginsAtEnd(mark: string, text: string, at: number): boolean {
  return text.length - at < mark.length && mark.startsWith(text.slice(at));
}
