import { EngineError } from "../errors/engine-error.js";
import type { PlacedImage } from "./image-encoder.js";
import type { LoadedImage } from "./image-source.js";

/** A part of an image's tokens: one of the vocabulary, or a number of vectors. */
export type ImagePiece =
  | { token: number }
  /** `columns` and `rows`: their grid for two-dimensional positions (M-RoPE), else 0. */
  | { vectors: number; columns: number; rows: number };

/** A range of a placed image's vectors: `count` ids from `first` on, for the image's vectors from `index` on. */
export interface VectorRange {
  first: number;
  count: number;
  columns: number;
  rows: number;
  index: number;
}

interface Entry {
  ref: WeakRef<PlacedImage>;
  ranges: readonly VectorRange[];
}

/** Tracks which images are still referenced. Tests use a fake. */
export interface Lifetimes {
  ref(image: PlacedImage): WeakRef<PlacedImage>;
  /** Calls back when the image was collected. */
  watch(image: PlacedImage, gone: () => void): void;
}

function followCollector(): Lifetimes {
  const collected = new FinalizationRegistry<() => void>((gone) => gone());
  return { ref: (image) => new WeakRef(image), watch: (image, gone) => collected.register(image, gone) };
}

/** Token ids are 32-bit integers. */
const lastId = 2 ** 31 - 1;

export interface ImageIdOptions {
  /** Called with each range of vectors before its ids are returned. */
  define?: (range: VectorRange) => void;
  lifetimes?: Lifetimes;
}

/**
 * Assigns ids to images. A file keeps its ids as long as its `PlacedImage`, or a placed `LoadedImage`, is referenced.
 * An id is never reused, so that results for a collected image are never taken for another image's.
 */
export class ImageIds {
  private readonly byHash = new Map<string, Entry>();
  /** Ids live as long as any reference to the image. */
  private readonly byImage = new WeakMap<LoadedImage, PlacedImage>();
  /** Sorted by their first ids. */
  private ranges: { range: VectorRange; entry: Entry }[] = [];
  private readonly placements = new WeakMap<PlacedImage, Entry>();
  private readonly define: (range: VectorRange) => void;
  private readonly lifetimes: Lifetimes;

  /** @param next the first id after those of the vocabulary. */
  constructor(
    private next: number,
    { define = () => {}, lifetimes = followCollector() }: ImageIdOptions = {},
  ) {
    this.define = define;
    this.lifetimes = lifetimes;
  }

  /** @param layOut called for an image without a placement. */
  place(image: LoadedImage, layOut: () => readonly ImagePiece[]): PlacedImage {
    const known = this.byHash.get(image.hash)?.ref.deref();
    if (known) this.byImage.set(image, known);
    if (known) return known;
    const ranges: VectorRange[] = [];
    const tokenIds: number[] = [];
    let index = 0;
    let next = this.next;
    for (const piece of layOut()) {
      if ("token" in piece) {
        tokenIds.push(piece.token);
        continue;
      }
      const { vectors: count, columns, rows } = piece;
      if (next + count > lastId) throw outOfIds(image);
      ranges.push({ first: next, count, columns, rows, index });
      for (let i = 0; i < count; i++) tokenIds.push(next++);
      index += count;
    }
    for (const range of ranges) {
      this.define(range);
      this.next = range.first + range.count;
    }
    const placed: PlacedImage = { image, tokenIds: Int32Array.from(tokenIds) };
    const entry = { ref: this.lifetimes.ref(placed), ranges };
    this.byHash.set(image.hash, entry);
    this.placements.set(placed, entry);
    this.byImage.set(image, placed);
    for (const range of ranges) this.ranges.push({ range, entry });
    this.lifetimes.watch(placed, () => this.forget(image.hash, entry));
    return placed;
  }

  /** The id ranges of the image's vectors. */
  rangesOf(placed: PlacedImage): readonly VectorRange[] {
    return this.placements.get(placed)?.ranges ?? [];
  }

  /** The image of this vector id, and the vector's index in it. */
  find(tokenId: number): { placed: PlacedImage; index: number } | undefined {
    let low = 0;
    let high = this.ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ranges[middle]!.range.first <= tokenId) low = middle + 1;
      else high = middle;
    }
    const found = this.ranges[low - 1];
    if (!found || tokenId >= found.range.first + found.range.count) return undefined;
    const placed = found.entry.ref.deref();
    return placed && { placed, index: found.range.index + tokenId - found.range.first };
  }

  private forget(hash: string, entry: Entry): void {
    // The file may have been placed again before its first placement was collected.
    if (this.byHash.get(hash) === entry) this.byHash.delete(hash);
    this.ranges = this.ranges.filter((range) => range.entry !== entry);
  }
}

function outOfIds(image: LoadedImage): EngineError {
  return new EngineError("gets no ids: all are taken", {
    code: "engine/out-of-ids",
    subject: `image ${image.hash.slice(0, 12)}`,
    expected: `ids up to ${lastId}`,
    received: "more vectors of images than that since the model was loaded",
    remedy: "load the model again",
  });
}
