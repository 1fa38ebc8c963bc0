import { EngineError } from "../errors/engine-error.js";
import type { ImageEncoder, ImageStats, Picture, PlacedImage } from "../images/image-encoder.js";
import { ImageIds } from "../images/image-ids.js";
import type { LoadedImage } from "../images/image-source.js";

/** Tokens around an image's vectors; their text is not the image's placeholder in a template. */
export const fakeImageMarks = ["<|image_start|>", "<|image_end|>"] as const;

export interface FakeImageOptions {
  /** Side of the square that a vector represents, in pixels. Default 16. */
  patch?: number;
  /** True if an image's file counts as damaged. Default: none does. */
  isDamaged?: (image: LoadedImage) => boolean;
}

/** Images of the fake engine: a mark, a vector for each patch, and a mark. Ids are assigned as in a real engine. */
export class FakeImages implements ImageEncoder {
  readonly info = { path: "fake", type: "fake", hash: "0".repeat(64) };
  private readonly ids: ImageIds;
  private readonly encoded = new Set<string>();
  private reused = 0;
  private readonly patch: number;

  constructor(
    private readonly vocabSize: number,
    private readonly marks: readonly [start: number, end: number],
    private readonly options: FakeImageOptions = {},
  ) {
    this.ids = new ImageIds(vocabSize);
    this.patch = options.patch ?? 16;
  }

  countTokens(size: { width: number; height: number }): number {
    const { columns, rows } = this.measure(size);
    return columns * rows + 2;
  }

  place(image: LoadedImage): PlacedImage {
    const { columns, rows } = this.measure(image);
    const [start, end] = this.marks;
    return this.ids.place(image, () => [
      { token: start },
      { vectors: columns * rows, columns: 0, rows: 0 },
      { token: end },
    ]);
  }

  async prepare(image: LoadedImage, options: { signal?: AbortSignal } = {}): Promise<void> {
    options.signal?.throwIfAborted();
    this.encode(image);
  }

  find(tokenId: number): { placed: PlacedImage; index: number } | undefined {
    return this.ids.find(tokenId);
  }

  /** A picture of the image's size, the same for the same file, but not the file's content. */
  async decode(image: LoadedImage): Promise<Picture> {
    this.checkFile(image);
    const { width, height } = image;
    const blue = Number.parseInt(image.hash.slice(0, 2), 16);
    const rgb = new Uint8Array(width * height * 3);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) rgb.set([x & 255, y & 255, blue], (y * width + x) * 3);
    }
    return { width, height, rgb };
  }

  stats(): ImageStats {
    const { size } = this.encoded;
    return {
      held: size,
      heldBytes: 0,
      memoryLimit: 0,
      encoded: size,
      encodedAgain: 0,
      encodeSeconds: 0,
      reused: this.reused,
    };
  }

  /**
   * The images whose vectors are among the tokens, each once. @throws EngineError for an id that belongs to no image.
   */
  use(tokenIds: ArrayLike<number>): PlacedImage[] {
    const used = new Set<PlacedImage>();
    for (let i = 0; i < tokenIds.length; i++) {
      const id = tokenIds[i]!;
      if (!(id >= this.vocabSize)) continue;
      const found = this.find(id);
      if (!found) {
        throw new EngineError("is neither a token nor a vector of an image that is held", {
          code: "engine/bad-token",
          subject: `token ${i}`,
          expected: `0 to ${this.vocabSize - 1}, or an id from \`images.place\``,
          received: `${id}`,
          remedy: "keep the placed image as long as its ids",
        });
      }
      used.add(found.placed);
    }
    for (const { image } of used) this.encode(image);
    return [...used];
  }

  /**
   * The token itself, or a number derived from the image and the vector's index in it: never the id, which depends on
   * the order of arrival.
   */
  describe(tokenId: number): number {
    const found = this.find(tokenId);
    return found ? Number.parseInt(found.placed.image.hash.slice(0, 4), 16) + found.index : tokenId;
  }

  private measure(size: { width: number; height: number }): { columns: number; rows: number } {
    return { columns: Math.ceil(size.width / this.patch), rows: Math.ceil(size.height / this.patch) };
  }

  private encode(image: LoadedImage): void {
    this.checkFile(image);
    if (this.encoded.has(image.hash)) this.reused++;
    this.encoded.add(image.hash);
  }

  private checkFile(image: LoadedImage): void {
    if (!this.options.isDamaged?.(image)) return;
    throw new EngineError("cannot be decoded", {
      code: "engine/bad-image",
      subject: `image ${image.hash.slice(0, 12)}`,
      expected: `a picture of ${image.width} x ${image.height} pixels`,
      received: "a damaged file",
    });
  }
}
