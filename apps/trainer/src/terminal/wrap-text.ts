import wrapAnsi from "wrap-ansi";

/** Columns to draw in: those of the terminal, at most 120, which eyes can follow; 80 where there is none. */
export function findWidth(stream: { isTTY?: boolean; columns?: number } = process.stdout): number {
  return stream.isTTY && stream.columns ? Math.max(40, Math.min(120, stream.columns)) : 80;
}

/** A paragraph as lines of at most `width` columns; spaces where it is broken go. */
export function wrapParagraph(text: string, width: number): string[] {
  return wrapAnsi(text, Math.max(10, width), { hard: true }).split("\n");
}

/** Plain text as lines of at most `width` columns; spaces at their beginning stay, long words are cut. */
export function wrapText(text: string, width: number): string[] {
  return wrapAnsi(text, Math.max(10, width), { hard: true, trim: false }).split("\n");
}

/** The end of a long path says more than its beginning. */
export function cutLeft(text: string, width: number): string {
  return text.length > width ? `…${text.slice(1 - width)}` : text;
}
