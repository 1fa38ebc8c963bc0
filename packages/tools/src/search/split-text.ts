/**
 * Splits a text into pieces of at most `maxChars`, at blank lines, else at line ends, sentences, spaces, else anywhere.
 */
export function splitText(text: string, maxChars: number): string[] {
  const pieces: string[] = [];
  let rest = text.trim();
  while (rest.length > maxChars) {
    const window = rest.slice(0, maxChars + 1);
    const cut =
      ["\n\n", "\n", ". ", " "].map((mark) => window.lastIndexOf(mark)).find((at) => at > maxChars / 2) ?? maxChars;
    pieces.push(rest.slice(0, cut + 1).trim());
    rest = rest.slice(cut + 1).trim();
  }
  if (rest !== "") pieces.push(rest);
  return pieces;
}
