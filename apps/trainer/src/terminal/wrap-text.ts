import wrapAnsi from "wrap-ansi";

/** Columns to draw in: the terminal's, at most 120 for readability; 80 without a terminal. */
export function findWidth(stream: { isTTY?: boolean; columns?: number } = process.stdout): number {
  return stream.isTTY && stream.columns ? Math.max(40, Math.min(120, stream.columns)) : 80;
}

/** A paragraph as lines of at most `width` columns, without spaces at the breaks. */
export function wrapParagraph(text: string, width: number): string[] {
  return wrapAnsi(text, Math.max(10, width), { hard: true }).split("\n");
}

/** Plain text as lines of at most `width` columns; leading spaces stay, long words are cut. */
export function wrapText(text: string, width: number): string[] {
  return wrapAnsi(text, Math.max(10, width), { hard: true, trim: false }).split("\n");
}

/** Cuts a long path at its beginning, which tells less than its end. */
export function cutLeft(text: string, width: number): string {
  return text.length > width ? `…${text.slice(1 - width)}` : text;
}
