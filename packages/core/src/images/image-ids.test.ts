import { describe, expect, it } from "vitest";
import type { PlacedImage } from "./image-encoder.js";
import { ImageIds, type Lifetimes } from "./image-ids.js";
import type { LoadedImage } from "./image-source.js";

const imageOf = (hash: string): LoadedImage => ({
  hash,
  width: 8,
  height: 8,
  mimeType: "image/png",
  bytes: new Uint8Array(0),
});
const grid = { columns: 0, rows: 0 };

/** A manual garbage collector. */
class Collector implements Lifetimes {
  private readonly gone = new Map<PlacedImage, () => void>();
  private readonly collected = new Set<PlacedImage>();

  ref(image: PlacedImage): WeakRef<PlacedImage> {
    return { deref: () => (this.collected.has(image) ? undefined : image), [Symbol.toStringTag]: "WeakRef" };
  }

  watch(image: PlacedImage, gone: () => void): void {
    this.gone.set(image, gone);
  }

  collect(image: PlacedImage): void {
    this.collected.add(image);
  }

  notify(image: PlacedImage): void {
    this.gone.get(image)!();
  }
}

describe("ids of images", () => {
  it("count on, in pieces between tokens of the vocabulary", () => {
    const ids = new ImageIds(100);
    const first = ids.place(imageOf("a"), () => [
      { token: 7 },
      { vectors: 2, ...grid },
      { token: 8 },
      { vectors: 1, columns: 1, rows: 1 },
    ]);
    expect([...first.tokenIds]).toEqual([7, 100, 101, 8, 102]);
    expect(ids.rangesOf(first)).toEqual([
      { first: 100, count: 2, ...grid, index: 0 },
      { first: 102, count: 1, columns: 1, rows: 1, index: 2 },
    ]);
    expect(ids.find(102)).toEqual({ placed: first, index: 2 });
    expect(ids.find(99)).toBeUndefined();
    expect(ids.place(imageOf("a"), () => [])).toBe(first);
    expect([...ids.place(imageOf("b"), () => [{ vectors: 1, ...grid }]).tokenIds]).toEqual([103]);
  });

  it("are not given again when an image is gone, even to the same file", () => {
    const collector = new Collector();
    const ids = new ImageIds(10, { lifetimes: collector });
    const place = (hash: string) => ids.place(imageOf(hash), () => [{ vectors: 2, ...grid }]);
    const first = place("a");
    collector.collect(first);
    const again = place("a");
    expect([...again.tokenIds]).toEqual([12, 13]);
    // The collector reports late; the file's second placement stays.
    collector.notify(first);
    expect(place("a")).toBe(again);
    expect(ids.find(10)).toBeUndefined();
    expect(ids.find(13)).toEqual({ placed: again, index: 1 });
  });

  it("end with the 32-bit integers", () => {
    const ids = new ImageIds(2 ** 31 - 3);
    ids.place(imageOf("a"), () => [{ vectors: 2, ...grid }]);
    expect(() => ids.place(imageOf("b"), () => [{ vectors: 1, ...grid }])).toThrow(
      expect.objectContaining({ code: "engine/out-of-ids" }),
    );
  });
});
