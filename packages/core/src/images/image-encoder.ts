import type { LoadedImage } from "./image-source.js";

/** The projector that makes vectors of images: a GGUF beside the model's, which llama.cpp calls mmproj. */
export interface ProjectorInfo {
  path: string;
  /** As llama.cpp names it, for example "idefics3" or "qwen2.5vl_merger". */
  type: string;
  /** SHA-256 of the file, in hex. */
  hash: string;
}

/** An image in a prompt. */
export interface PlacedImage {
  readonly image: LoadedImage;
  /**
   * Its tokens in a prompt: those of the vocabulary that the model wants around and between its parts, and for each of its
   * vectors an id from `info.vocabSize` on. Such ids mean something in this process alone: files hold the image's hash and place.
   */
  readonly tokenIds: Int32Array;
}

/** Pixels, row after row from the top: red, green and blue, a byte each. */
export interface Picture {
  width: number;
  height: number;
  rgb: Uint8Array;
}

/** What an image encoder holds now, and has done. */
export interface ImageStats {
  /** Images whose vectors are in memory, and the bytes of these and of their files; at most so many stay when nothing uses them. */
  held: number;
  heldBytes: number;
  memoryLimit: number;
  /** Images encoded since loading, those again because their vectors had been dropped, and the time that took. */
  encoded: number;
  encodedAgain: number;
  encodeSeconds: number;
  /** Uses of an image whose vectors were there. */
  reused: number;
}

/**
 * Images as an engine takes them. An image's vectors stand in sequences as tokens do; the same file has the same ids as long
 * as anybody holds its `PlacedImage`, or a `LoadedImage` that was placed, so that a conversation's messages keep what they
 * show. They are computed when they are first evaluated, once for all who show the image.
 */
export interface ImageEncoder {
  readonly info: ProjectorInfo;
  /** How many tokens an image of this size takes; decodes nothing. */
  countTokens(size: { width: number; height: number }): number;
  /**
   * The image's tokens, at once: nothing is decoded yet. Whoever keeps the ids keeps this, or the image.
   * @throws EngineError for an image too large for the projector.
   */
  place(image: LoadedImage): PlacedImage;
  /** Decodes and encodes ahead. @throws EngineError for a damaged file. */
  prepare(image: LoadedImage, options?: { signal?: AbortSignal }): Promise<void>;
  /** Whose vector this id stands for, and which; undefined for a token of text, and for an image that nobody holds. */
  find(tokenId: number): { placed: PlacedImage; index: number } | undefined;
  /** @throws EngineError for a damaged file, or one of more pixels than the limit. */
  decode(image: LoadedImage): Promise<Picture>;
  stats(): ImageStats;
}
