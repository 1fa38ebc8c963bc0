import type { ImageRecord } from "@cria/core";

/** An image's place in a text, which is that of its mark: from the first character to before `to`. */
export interface RenderedImage {
  readonly from: number;
  readonly to: number;
  readonly image: ImageRecord;
}

/**
 * Text of a conversation with the places of images, and of control tokens that others spelled. Places count UTF-16
 * units.
 */
export interface RenderedText {
  readonly text: string;
  /**
   * Places inside control tokens' texts that a user or a tool has spelled; ascending. Text with such a place in it
   * stays plain text.
   */
  readonly plainAt: readonly number[];
  /** In order. Each of them is a private word in the text. */
  readonly images: readonly RenderedImage[];
}

/** Text of the template or of its model's owner. */
export function ownText(text: string): RenderedText {
  return { text, plainAt: [], images: [] };
}

/** Cuts no image: its mark must be entirely between `from` and `to`, or outside. */
export function sliceRendered(rendered: RenderedText, from: number, to = rendered.text.length): RenderedText {
  const { text, plainAt, images } = rendered;
  const places = plainAt.length === 0 ? plainAt : plainAt.slice(findFirst(plainAt, from), findFirst(plainAt, to));
  const within = images.filter((image) => image.from >= from && image.to <= to);
  return { text: text.slice(from, to), plainAt: places.map((at) => at - from), images: moveImages(within, -from) };
}

export function joinRendered(parts: readonly RenderedText[]): RenderedText {
  const plainAt: number[] = [];
  const images: RenderedImage[] = [];
  let length = 0;
  for (const part of parts) {
    for (const place of part.plainAt) plainAt.push(place + length);
    images.push(...moveImages(part.images, length));
    length += part.text.length;
  }
  return { text: parts.map((part) => part.text).join(""), plainAt, images };
}

/** Parts without images, and each image by itself; none is empty. */
export function cutAtImages(rendered: RenderedText): RenderedText[] {
  const { text, images } = rendered;
  if (images.length === 0) return text === "" ? [] : [rendered];
  const ends = [...new Set([0, ...images.flatMap(({ from, to }) => [from, to]), text.length])];
  return ends.slice(1).map((to, i) => sliceRendered(rendered, ends[i]!, to));
}

function moveImages(images: readonly RenderedImage[], by: number): RenderedImage[] {
  return images.map(({ from, to, image }) => ({ from: from + by, to: to + by, image }));
}

/** Index of the first entry of an ascending list that is not below `value`; the list's length when all are. */
export function findFirst(ascending: readonly number[], value: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
