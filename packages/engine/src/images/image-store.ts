import {
  EngineError,
  type ImageEncoder,
  type ImageStats,
  type Lifetimes,
  type LoadedImage,
  type Picture,
  type PlacedImage,
  type ProjectorInfo,
} from "@cria/core";
import { ImageIds, readOrientation } from "@cria/core/internal";
import { JobQueue } from "../job-queue.js";
import { callNative, callNativeSync } from "../native.js";
import type { NativeModel, NativeProjector } from "../native-types.js";
import { estimateEncoding, type TowerShape } from "./encoding-memory.js";
import { toNativeFile } from "./to-native-file.js";

/** An image whose vectors are in memory, or being encoded. */
interface Holding {
  /** Resolved when the vectors are held. */
  held: Promise<void>;
  /** True once the encoding has begun. */
  begun: boolean;
  /** Size of the vectors and the file; 0 until they are held. */
  bytes: number;
  /** Number of current users. */
  pins: number;
}

export interface ImageStoreOptions {
  vocabSize: number;
  /** Bytes of vectors and files that stay in memory without users. */
  memoryLimit: number;
  /** The model's context size; an image that needs more is not encoded ahead. Absent: no limit. */
  contextSize?: number;
  /** Data for estimating the memory of an encoding, and its limit in bytes. Absent: no limit. */
  encoding?: { tower: TowerShape; limit: number };
  /** Tests control lifetimes by hand. */
  lifetimes?: Lifetimes;
}

/**
 * The images of one model: their ids, and their vectors while there is memory. Pin the images among tokens while you
 * evaluate these. Of unpinned images the least recently used are dropped, and encoded again when needed. An encoding
 * depends only on the file, so the vectors then have the same bits.
 */
export class ImageStore implements ImageEncoder {
  /** Ids of vectors start here. */
  readonly firstId: number;
  private readonly ids: ImageIds;
  /** Least recently used first. */
  private readonly holdings = new Map<PlacedImage, Holding>();
  private readonly seen = new WeakSet<PlacedImage>();
  private readonly encodings = new JobQueue();
  private readonly counts = { held: 0, heldBytes: 0, encoded: 0, encodedAgain: 0, encodeSeconds: 0, reused: 0 };
  private readonly vectorSize: number;

  constructor(
    private readonly native: Pick<NativeModel, "defineVectors" | "holdVectors" | "dropVectors">,
    private readonly projector: NativeProjector,
    readonly info: ProjectorInfo,
    private readonly options: ImageStoreOptions,
  ) {
    this.vectorSize = projector.info().vectorSize;
    this.firstId = options.vocabSize;
    this.ids = new ImageIds(this.firstId, {
      lifetimes: options.lifetimes,
      define: ({ first, count, columns, rows }) =>
        callNativeSync(() => this.native.defineVectors(first, count, columns, rows)),
    });
  }

  countTokens({ width, height }: { width: number; height: number }): number {
    const pieces = callNativeSync(() => this.projector.layout(width, height));
    return pieces.reduce((sum, piece) => sum + ("token" in piece ? 1 : piece.vectors), 0);
  }

  place(image: LoadedImage): PlacedImage {
    return this.ids.place(image, () => callNativeSync(() => this.projector.layout(image.width, image.height)));
  }

  async prepare(image: LoadedImage, { signal }: { signal?: AbortSignal } = {}): Promise<void> {
    const placed = this.place(image);
    const { contextSize = Number.POSITIVE_INFINITY } = this.options;
    if (placed.tokenIds.length >= contextSize) throw beyondContext(placed, contextSize);
    const release = await this.pin([placed], signal);
    release();
  }

  readonly find = (tokenId: number): { placed: PlacedImage; index: number } | undefined => this.ids.find(tokenId);

  /** The ids of an image's vectors, in order. */
  vectorIds(placed: PlacedImage): Int32Array {
    return placed.tokenIds.filter((id) => id >= this.firstId);
  }

  async decode(image: LoadedImage): Promise<Picture> {
    const orientation = await readOrientation(image.bytes);
    const pixels = image.width * image.height;
    const file = await toNativeFile(image.bytes, pixels);
    return callNative(() => this.projector.decode(file, pixels, orientation));
  }

  stats(): ImageStats {
    return { ...this.counts, memoryLimit: this.options.memoryLimit };
  }

  /** The images among the tokens, each once, in order. @throws EngineError for an id whose image was released. */
  list(tokenIds: ArrayLike<number>, subject: string): PlacedImage[] {
    const images = new Set<PlacedImage>();
    for (let i = 0; i < tokenIds.length; i++) {
      if (tokenIds[i]! < this.firstId) continue;
      const found = this.find(tokenIds[i]!);
      if (!found) throw notHeld(`${subject}, token ${i}`, tokenIds[i]!);
      images.add(found.placed);
    }
    return [...images];
  }

  /**
   * Loads the images' vectors into memory, where they stay until the returned function is called.
   * @throws EngineError for a damaged file; the signal's reason when it aborts meanwhile.
   */
  async pin(images: readonly PlacedImage[], signal?: AbortSignal): Promise<() => void> {
    const pinned = new Map(images.map((placed) => [placed, this.hold(placed)]));
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      for (const [placed, holding] of pinned) this.unpin(placed, holding);
      this.makeRoom();
    };
    try {
      await unlessAborted(Promise.all([...pinned.values()].map(({ held }) => held)), signal);
      return release;
    } catch (error) {
      release();
      throw error;
    }
  }

  async dispose(): Promise<void> {
    await callNative(() => this.projector.dispose());
  }

  /** Adds a user of the image. */
  private hold(placed: PlacedImage): Holding {
    const known = this.holdings.get(placed);
    if (known) {
      if (known.bytes > 0) this.counts.reused++;
      known.pins++;
      return known;
    }
    const holding: Holding = { held: Promise.resolve(), begun: false, bytes: 0, pins: 1 };
    this.holdings.set(placed, holding);
    holding.held = this.encodings.run(async () => {
      // All users may be gone when its turn comes.
      if (holding.pins === 0) return;
      holding.begun = true;
      await this.encode(placed, holding);
    });
    // Those who pinned it get the error; perhaps all of them are gone. The next request tries again.
    holding.held.catch(() => this.holdings.delete(placed));
    return holding;
  }

  private unpin(placed: PlacedImage, holding: Holding): void {
    holding.pins--;
    if (holding.pins > 0 || this.holdings.get(placed) !== holding) return;
    this.holdings.delete(placed);
    // Most recently used last.
    if (holding.begun) this.holdings.set(placed, holding);
  }

  private async encode(placed: PlacedImage, holding: Holding): Promise<void> {
    const { image } = placed;
    this.checkMemory(placed);
    const orientation = await readOrientation(image.bytes);
    const pixels = image.width * image.height;
    const started = performance.now();
    const file = await toNativeFile(image.bytes, pixels);
    const { vectors } = await callNative(() => this.projector.encode(file, pixels, orientation));
    const { counts, vectorSize } = this;
    counts.encodeSeconds += (performance.now() - started) / 1000;
    counts.encoded++;
    if (this.seen.has(placed)) counts.encodedAgain++;
    this.seen.add(placed);
    for (const { first, count, index } of this.ids.rangesOf(placed)) {
      const values = vectors.subarray(index * vectorSize, (index + count) * vectorSize);
      callNativeSync(() => this.native.holdVectors(first, values));
    }
    holding.bytes = vectors.byteLength + image.bytes.byteLength;
    counts.held++;
    counts.heldBytes += holding.bytes;
    this.makeRoom();
  }

  /** The memory is known before decoding. @throws EngineError beyond the limit. */
  private checkMemory(placed: PlacedImage): void {
    const { encoding } = this.options;
    if (!encoding) return;
    const { width, height } = placed.image;
    const vectors = Math.max(...this.ids.rangesOf(placed).map(({ count }) => count));
    const needed = estimateEncoding(encoding.tower, vectors, width * height);
    if (needed <= encoding.limit) return;
    throw new EngineError("takes too much memory to encode", {
      code: "engine/bad-image",
      subject: "image",
      expected: `at most ${toMegabytes(encoding.limit)} (imageEncodeMemory)`,
      received: `${toMegabytes(needed)} for ${width} x ${height} pixels, of which ${vectors} vectors are computed at once`,
      remedy:
        "lower imageMaxTokens (image_max_tokens in configs), so that large images are scaled down, or raise the limit",
    });
  }

  /** Drops unused images, least recently used first, until the rest fits. */
  private makeRoom(): void {
    const { counts } = this;
    for (const [placed, holding] of this.holdings) {
      if (counts.heldBytes <= this.options.memoryLimit) return;
      if (holding.pins > 0 || holding.bytes === 0) continue;
      this.holdings.delete(placed);
      for (const { first } of this.ids.rangesOf(placed)) callNativeSync(() => this.native.dropVectors(first));
      counts.held--;
      counts.heldBytes -= holding.bytes;
    }
  }
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  signal.throwIfAborted();
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

const toMegabytes = (bytes: number) => `${Math.ceil(bytes / 1e6)} MB`;

function beyondContext({ image, tokenIds }: PlacedImage, contextSize: number): EngineError {
  return new EngineError("has more tokens than the context", {
    code: "engine/bad-image",
    subject: "image",
    expected: `fewer than ${contextSize} tokens`,
    received: `${tokenIds.length} tokens for ${image.width} x ${image.height} pixels`,
    remedy:
      "scale it down, lower imageMaxTokens (image_max_tokens in configs), or load the model with a larger contextSize",
  });
}

function notHeld(subject: string, id: number): EngineError {
  return new EngineError("is neither a token nor a vector of an image that is held", {
    code: "engine/bad-token",
    subject,
    expected: "a token of the vocabulary, or an id from `images.place`",
    received: `${id}`,
    remedy: "keep the placed image, or the image, as long as its ids",
  });
}
