/**
 * Control characters, and what turns the direction of text: line feeds and tabs alone may do something in a terminal. Half of
 * a surrogate pair is no text.
 */
const HARMFUL = /[^\P{Cc}\t\n]|\p{Bidi_Control}|[\u2028\u2029]|\p{Surrogate}/gu;

/**
 * Text of a model, a tool or a file, for people to read in a terminal: nothing in it moves the cursor, changes colours or the
 * window's title, rings a bell or turns the direction of writing. Such characters are written out, as `\x1b` or `\u202e`.
 * It looks at each character alone: pieces of a stream may be given one after another.
 */
export function makePrintable(text: string): string {
  return text.replace(HARMFUL, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** The same on one line: line feeds and tabs are written out too. */
export function makePrintableLine(text: string): string {
  return makePrintable(text).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}
