import { EngineError } from "../errors/engine-error.js";
import type { PlacedImage } from "./image-encoder.js";
import type { LoadedImage } from "./image-source.js";

/** A stretch of an image's tokens: one of the vocabulary, or so many vectors. */
export type ImagePiece =
  | { token: number }
  /** `columns` and `rows`: their grid where positions are of two dimensions (M-RoPE), else 0. */
  | { vectors: number; columns: number; rows: number };

/** A stretch of vectors of a placed image: `count` ids from `first` on, the image's vectors from `index` on. */
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

/** What follows which images are alive. Tests give one of their own. */
export interface Lifetimes {
  ref(image: PlacedImage): WeakRef<PlacedImage>;
  /** Calls back when the image is gone. */
  watch(image: PlacedImage, gone: () => void): void;
}

function followCollector(): Lifetimes {
  const collected = new FinalizationRegistry<() => void>((gone) => gone());
  return { ref: (image) => new WeakRef(image), watch: (image, gone) => collected.register(image, gone) };
}

/** Token ids are 32-bit integers. */
const lastId = 2 ** 31 - 1;

export interface ImageIdOptions {
  /** Is told of each range of vectors before anybody sees its ids. */
  define?: (range: VectorRange) => void;
  lifetimes?: Lifetimes;
}

/**
 * Gives images their ids. The same file has the same ids as long as anybody holds its `PlacedImage`, or a `LoadedImage` that was
 * placed; no id is ever given to another image, so that what was computed for an image that is gone is never taken for
 * another one's.
 */
export class ImageIds {
  private readonly byHash = new Map<string, Entry>();
  /** Who keeps a file keeps its ids. */
  private readonly byImage = new WeakMap<LoadedImage, PlacedImage>();
  /** By their first id, which rises. */
  private ranges: { range: VectorRange; entry: Entry }[] = [];
  private readonly placements = new WeakMap<PlacedImage, Entry>();
  private readonly define: (range: VectorRange) => void;
  private readonly lifetimes: Lifetimes;

  /** @param next the first id that no token of the vocabulary has. */
  constructor(
    private next: number,
    { define = () => {}, lifetimes = followCollector() }: ImageIdOptions = {},
  ) {
    this.define = define;
    this.lifetimes = lifetimes;
  }

  /** @param layOut is called for an image that nobody holds yet. */
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

  /** Where the image's vectors stand among the ids. */
  rangesOf(placed: PlacedImage): readonly VectorRange[] {
    return this.placements.get(placed)?.ranges ?? [];
  }

  /** Whose vector this id stands for, and which of the image's. */
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
