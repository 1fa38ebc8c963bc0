import type { DumpImage, DumpLine } from "@cria/records";

/** A unit of pointing: a token, an image, or a span whose token boundaries the dump lacks. */
export interface Cell {
  /** Index of its (first) token. */
  token: number;
  /** Tokens in it. */
  count: number;
  text: string;
  sampled: boolean;
  /** The image that it stands for; an image's tokens have no text. */
  image?: DumpImage;
}

/** The whole text in cells. `exact`: each is one token, or an image. */
export function cutCells(line: DumpLine): { cells: Cell[]; exact: boolean } {
  const cells: Cell[] = [];
  let exact = line.spans.length > 0;
  line.spans.forEach((span, i) => {
    const end = line.spans[i + 1]?.start ?? line.token_ids.length;
    const count = end - span.start;
    if (span.image !== undefined) {
      const image = line.images?.[span.image];
      const cell = { token: span.start, count, text: `image ${count} tokens`, sampled: false };
      cells.push(image ? { ...cell, image } : cell);
      return;
    }
    const ends = span.ends;
    if (!ends || ends.length !== count) {
      exact = false;
      cells.push({ token: span.start, count, text: span.text, sampled: span.mask === 1 });
      return;
    }
    let from = 0;
    ends.forEach((to, k) => {
      cells.push({ token: span.start + k, count: 1, text: span.text.slice(from, to), sampled: span.mask === 1 });
      from = Math.max(from, to);
    });
  });
  return { cells, exact };
}
