/** Arguments nested deeper than this are refused: printing or validating them could exhaust the stack. */
const MAX_DEPTH = 100;

export type JsonSpan =
  | { ok: true /** Index behind the closing bracket. */; end: number }
  | {
      ok: false;
      reason: "unterminated" | "invalid" | "too deep" /** Index up to which the text was read. */;
      at: number;
    };

/** Problems of a JSON text without an end, for the model to read. */
export const jsonProblems = {
  unterminated: "the JSON does not end",
  invalid: "not valid JSON",
  "too deep": "nested too deeply",
} as const;

/** Index of the first character at or after `start` that is not white space. */
export function skipSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && /\s/.test(text[at]!)) at++;
  return at;
}

/**
 * Finds the end of the JSON object or array that opens at `start`: it counts brackets outside of strings and stops at
 * the first character that JSON does not allow there. `JSON.parse` stays the judge of the grammar.
 *
 * Stopping early keeps parsers linear: of two searches that both pass a point, one is inside a string there and the
 * other is not, so every character is read at most twice however many searches start.
 * @param mark a text that also ends the search outside of strings, for formats whose marks have only characters of
 * JSON.
 */
export function findJsonEnd(text: string, start: number, mark?: string): JsonSpan {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const char = text[at]!;
    if (char === '"') {
      at = skipString(text, at);
      if (at < 0) return { ok: false, reason: "unterminated", at: text.length };
    } else if (char === "{" || char === "[") {
      if (mark?.[0] === char && text.startsWith(mark, at)) return { ok: false, reason: "invalid", at };
      if (++depth > MAX_DEPTH) return { ok: false, reason: "too deep", at };
    } else if (char === "}" || char === "]") {
      if (--depth === 0) return { ok: true, end: at + 1 };
    } else if (!isJsonFiller(char)) {
      return { ok: false, reason: "invalid", at };
    }
  }
  return { ok: false, reason: "unterminated", at: text.length };
}

/** Index of the quote that closes the string opened at `open`, or -1. */
function skipString(text: string, open: number): number {
  for (let at = open + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at;
  }
  return -1;
}

/** Separators, white space, and the letters of numbers, true, false and null. */
function isJsonFiller(char: string): boolean {
  return /[\s:,\-+.\w]/.test(char);
}
