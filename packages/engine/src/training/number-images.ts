import type { LoadedImage, ShardImage } from "@cria/core";
import type { ImageStore } from "../images/image-store.js";

/** Ids that identify the image of each vector by its content, not by its order of arrival. */
export interface NumberedBatch {
  sequences: readonly Int32Array[];
  /** In the order of their first ids. */
  images: readonly ShardImage[];
}

/**
 * Numbers the images of sequences by their hashes. Rows are sorted by token ids, and results must depend neither on
 * the order in which images were placed, nor on the order of the sequences.
 */
export function numberByHash(
  sequences: readonly Int32Array[],
  { find, firstId }: Pick<ImageStore, "find" | "firstId">,
): NumberedBatch {
  const found = new Map<string, { image: LoadedImage; count: number }>();
  for (const tokenIds of sequences) {
    for (const id of tokenIds) {
      if (id < firstId) continue;
      const { image, tokenIds: all } = find(id)!.placed;
      if (found.has(image.hash)) continue;
      found.set(image.hash, { image, count: all.filter((id) => id >= firstId).length });
    }
  }
  const firsts = new Map<string, number>();
  let next = firstId;
  const images: ShardImage[] = [];
  for (const [hash, { image, count }] of [...found].sort(([a], [b]) => (a < b ? -1 : 1))) {
    images.push({ first: next, count, image });
    firsts.set(hash, next);
    next += count;
  }
  const renumber = (id: number) => {
    if (id < firstId) return id;
    const { placed, index } = find(id)!;
    return firsts.get(placed.image.hash)! + index;
  };
  return { sequences: images.length === 0 ? sequences : sequences.map((tokenIds) => tokenIds.map(renumber)), images };
}

/** Renumbers the images of a micro-batch by their first appearance in it; changes its tokens. */
export function numberByPlace(tokens: Int32Array, images: readonly ShardImage[]): ShardImage[] {
  const shown: ShardImage[] = [];
  const start = images[0]?.first ?? Number.POSITIVE_INFINITY;
  const shifts = new Map<ShardImage, number>();
  let next = start;
  for (let i = 0; i < tokens.length; i++) {
    const id = tokens[i]!;
    if (id < start) continue;
    const image = findImage(images, id);
    if (!shifts.has(image)) {
      shifts.set(image, next - image.first);
      shown.push({ ...image, first: next });
      next += image.count;
    }
    tokens[i] = id + shifts.get(image)!;
  }
  return shown;
}

function findImage(images: readonly ShardImage[], id: number): ShardImage {
  let low = 0;
  let high = images.length;
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (images[middle]!.first <= id) low = middle;
    else high = middle;
  }
  return images[low]!;
}
