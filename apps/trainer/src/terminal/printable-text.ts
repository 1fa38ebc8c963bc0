/**
 * Control characters other than line feeds and tabs, characters that change the direction of text, and halves of
 * surrogate pairs.
 */
const HARMFUL = /[^\P{Cc}\t\n]|\p{Bidi_Control}|[\u2028\u2029]|\p{Surrogate}/gu;

/**
 * Text of a model, a tool or a file, made safe for a terminal: it cannot move the cursor, change colours or the
 * window's title, ring a bell or turn the direction of writing. Such characters are written out, as `\x1b` or `\u202e`.
 * Each character is judged by itself, so pieces of a stream may be given one after another.
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
