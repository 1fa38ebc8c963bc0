import type { ImagePiece, Lifetimes, PlacedImage } from "@cria/core";
import { describe, expect, it } from "vitest";
import { makeStubImage, StubProjector } from "../testing/index.js";
import { ImageStore } from "./image-store.js";

const vocabSize = 100;
/** A vector has 2 floats; an image of 8 x 8 pixels is one, and 8 + 4 bytes with its file. */
const bytesOfImage = 12;

/** Records definitions and held vectors, in place of the addon. */
class FakeNative {
  readonly defined: number[][] = [];
  readonly held = new Map<number, Float32Array>();

  defineVectors(...definition: number[]): void {
    this.defined.push(definition);
  }

  holdVectors(first: number, values: Float32Array): void {
    this.held.set(first, values.slice());
  }

  dropVectors(first: number): void {
    if (!this.held.delete(first)) throw new Error(`${first} is not held`);
  }
}

/** A manual garbage collector. */
class Collector implements Lifetimes {
  private readonly collected = new Set<PlacedImage>();

  ref(image: PlacedImage): WeakRef<PlacedImage> {
    return { deref: () => (this.collected.has(image) ? undefined : image), [Symbol.toStringTag]: "WeakRef" };
  }

  watch(): void {}

  collect(image: PlacedImage): void {
    this.collected.add(image);
  }
}

function open(images: number, layout?: (width: number, height: number) => ImagePiece[]) {
  const native = new FakeNative();
  const projector = new StubProjector({ vectorSize: 2, layout });
  const lifetimes = new Collector();
  const info = { path: "", type: "stub", hash: "" };
  const store = new ImageStore(native, projector, info, { vocabSize, memoryLimit: images * bytesOfImage, lifetimes });
  return { native, projector, store, lifetimes };
}

const pictures = Array.from({ length: 6 }, (_, i) => makeStubImage(i + 1, 8, 8));

describe("ImageStore", () => {
  it("keeps as many images as fit, and drops those unused longest", async () => {
    const { native, projector, store } = open(2);
    for (const picture of pictures.slice(0, 3)) await store.prepare(picture);
    expect(store.stats()).toMatchObject({ held: 2, heldBytes: 24, memoryLimit: 24, encoded: 3, encodedAgain: 0 });
    await store.prepare(pictures[1]!);
    await store.prepare(pictures[0]!);
    // The third image is used before the second.
    await store.prepare(pictures[1]!);
    expect(projector.encoded).toEqual([1, 2, 3, 1]);
    expect(store.stats()).toMatchObject({ held: 2, encoded: 4, encodedAgain: 1, reused: 2 });
    expect([...native.held.keys()].sort()).toEqual([vocabSize, vocabSize + 1]);
  });

  it("encodes again to the same bits", async () => {
    const { native, store } = open(0);
    const [picture] = pictures;
    const release = await store.pin([store.place(picture!)]);
    const first = native.held.get(vocabSize);
    expect(first).toHaveLength(2);
    release();
    expect(native.held.size).toBe(0);
    const again = await store.pin([store.place(picture!)]);
    expect(native.held.get(vocabSize)).toEqual(first);
    again();
    again();
    expect(store.stats()).toMatchObject({ held: 0, heldBytes: 0, encoded: 2, encodedAgain: 1 });
  });

  it("holds pinned images beyond the limit, and frees them afterwards", async () => {
    const { native, store } = open(1);
    const placed = pictures.map((picture) => store.place(picture));
    const release = await store.pin(placed);
    const second = await store.pin(placed.slice(0, 2));
    expect(native.held.size).toBe(6);
    release();
    expect(native.held.size).toBe(2);
    second();
    expect(store.stats()).toMatchObject({ held: 1, heldBytes: 12 });
  });

  it("encodes an image once for all callers at once", async () => {
    const { projector, store } = open(6);
    let openGate = () => {};
    projector.gate = new Promise((resolve) => {
      openGate = resolve;
    });
    const placed = store.place(pictures[0]!);
    const asked = [store.pin([placed]), store.pin([placed, store.place(pictures[1]!)]), store.prepare(pictures[0]!)];
    openGate();
    await Promise.all(asked);
    expect(projector.encoded).toEqual([1, 2]);
  });

  it("refuses a damaged file for every caller, and stores nothing", async () => {
    const { store, projector } = open(6);
    const damaged = makeStubImage(0, 8, 8);
    const asked = [store.pin([store.place(damaged), store.place(pictures[0]!)]), store.prepare(damaged)];
    for (const one of asked) await expect(one).rejects.toMatchObject({ code: "engine/bad-image" });
    await store.prepare(pictures[0]!);
    // It may succeed another time.
    await expect(store.prepare(damaged)).rejects.toMatchObject({ code: "engine/bad-image" });
    expect(projector.encoded).toEqual([0, 1, 0]);
    expect(store.stats()).toMatchObject({ held: 1, encoded: 1 });
  });

  it("does not encode an image for aborted requests", async () => {
    const { store, projector } = open(6);
    let openGate = () => {};
    projector.gate = new Promise((resolve) => {
      openGate = resolve;
    });
    const controller = new AbortController();
    const first = store.prepare(pictures[0]!);
    const aborted = [pictures[1]!, pictures[2]!].map((picture) => store.prepare(picture, controller));
    const other = store.prepare(pictures[2]!);
    const enough = new Error("enough");
    controller.abort(enough);
    for (const one of aborted) await expect(one).rejects.toBe(enough);
    openGate();
    await Promise.all([first, other]);
    expect(projector.encoded).toEqual([1, 3]);
  });

  it("gives vectors between tokens their own ranges", async () => {
    const grid = { columns: 0, rows: 0 };
    const { native, store } = open(6, () => [
      { token: 7 },
      { vectors: 2, columns: 2, rows: 1 },
      { token: 8 },
      { vectors: 1, ...grid },
    ]);
    const placed = store.place(pictures[0]!);
    expect([...placed.tokenIds]).toEqual([7, 100, 101, 8, 102]);
    expect(store.countTokens({ width: 8, height: 8 })).toBe(5);
    expect(native.defined).toEqual([
      [100, 2, 2, 1],
      [102, 1, 0, 0],
    ]);
    await store.prepare(pictures[0]!);
    expect([...native.held].map(([first, values]) => [first, values.length])).toEqual([
      [100, 4],
      [102, 2],
    ]);
    expect(store.list([1, 102, 7, 100], "prompt")).toEqual([placed]);
    expect(() => store.list([1, 103], "prompt")).toThrow(
      expect.objectContaining({ code: "engine/bad-token", subject: "prompt, token 1", received: "103" }),
    );
  });

  it("gives an image that was gone new ids", async () => {
    const { store, lifetimes } = open(0);
    const placed = store.place(pictures[0]!);
    const [id] = store.vectorIds(placed);
    lifetimes.collect(placed);
    expect(store.find(id!)).toBeUndefined();
    expect(() => store.list([id!], "prompt")).toThrow(
      expect.objectContaining({ code: "engine/bad-token", subject: "prompt, token 0", received: String(id) }),
    );
    expect(store.vectorIds(store.place(pictures[0]!))[0]).toBe(id! + 1);
  });
});
