import type { LoadedImage } from "./image-source.js";

/** The projector that computes vectors of images: a second GGUF of the model, which llama.cpp calls mmproj. */
export interface ProjectorInfo {
  path: string;
  /** llama.cpp's name, for example "idefics3" or "qwen2.5vl_merger". */
  type: string;
  /** SHA-256 of the file, in hex. */
  hash: string;
}

/** An image in a prompt. */
export interface PlacedImage {
  readonly image: LoadedImage;
  /**
   * Its tokens in a prompt: vocabulary tokens that the model needs around and between its parts, and an id from
   * `info.vocabSize` on for each of its vectors. These ids are only valid within this process: files store the image's
   * hash and place.
   */
  readonly tokenIds: Int32Array;
}

/** Pixels in rows from the top: red, green and blue, one byte each. */
export interface Picture {
  width: number;
  height: number;
  rgb: Uint8Array;
}

/** Current content and totals of an image encoder. */
export interface ImageStats {
  /**
   * Number of images whose vectors are in memory, the bytes of these vectors and of the files, and the limit of bytes
   * without users.
   */
  held: number;
  heldBytes: number;
  memoryLimit: number;
  /**
   * Images encoded since loading, those encoded again because their vectors were dropped, and the time for all of it.
   */
  encoded: number;
  encodedAgain: number;
  encodeSeconds: number;
  /** Uses of an image whose vectors were in memory. */
  reused: number;
}

/**
 * An engine's images. An image's vectors stand in sequences as tokens do. A file keeps its ids as long as its
 * `PlacedImage`, or a placed `LoadedImage`, is referenced, so that ids in a conversation stay valid. Vectors are
 * computed when they are first evaluated, once for all users of the image.
 */
export interface ImageEncoder {
  readonly info: ProjectorInfo;
  /** Number of tokens of an image of this size; decodes nothing. */
  countTokens(size: { width: number; height: number }): number;
  /**
   * The image's tokens, without decoding it yet. Keep this, or the image, as long as you keep the ids.
   * @throws EngineError for an image too large for the projector.
   */
  place(image: LoadedImage): PlacedImage;
  /** Decodes and encodes ahead. @throws EngineError for a damaged file. */
  prepare(image: LoadedImage, options?: { signal?: AbortSignal }): Promise<void>;
  /**
   * The image of this vector id, and the vector's index in it; undefined for a token of text, and for an image that was
   * released.
   */
  find(tokenId: number): { placed: PlacedImage; index: number } | undefined;
  /** @throws EngineError for a damaged file, or one with more pixels than the limit. */
  decode(image: LoadedImage): Promise<Picture>;
  stats(): ImageStats;
}
