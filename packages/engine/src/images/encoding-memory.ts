import type { GgufHeader } from "../gguf-files/read-gguf.js";

/** What of a projector's header decides how much memory encoding takes. */
export interface TowerShape {
  type: string;
  /** In pixels: a side of a patch, and of the square that a tower of fixed size sees. */
  patchSize: number;
  imageSize: number;
  embedding: number;
  feedForward: number;
  /** Patches of a side that become one vector. */
  merge: number;
}

/** Most bytes that encoding one picture may take, unless told otherwise: 4,096 tokens of Qwen2.5-VL take half of it. */
export const defaultEncodeMemory = 2 * 2 ** 30;

/** Vectors of a picture at most, as llama.cpp bounds them, of families that take pictures at their own size. */
const mostVectors: Readonly<Record<string, number>> = {
  pixtral: 1024,
  qwen2vl_merger: 4096,
  "qwen2.5vl_merger": 4096,
  qwen3vl_merger: 4096,
};

export function readTowerShape({ metadata }: GgufHeader): TowerShape {
  const read = (key: string, fallback: number) => {
    const value = metadata.get(`clip.vision.${key}`)?.value;
    return typeof value === "number" && value > 0 ? value : fallback;
  };
  const name = metadata.get("clip.projector_type")?.value ?? metadata.get("clip.vision.projector_type")?.value;
  const type = String(name ?? "");
  return {
    type,
    patchSize: read("patch_size", 14),
    imageSize: read("image_size", 336),
    embedding: read("embedding_length", 1024),
    feedForward: read("feed_forward_length", 4096),
    merge: read("spatial_merge_size", type.startsWith("qwen") ? 2 : 1),
  };
}

/**
 * Bytes that encoding a picture takes at its peak, beyond the projector and the vectors: what one layer of the tower holds for each
 * patch, and the pixels. Towers see one tile after the other.
 * @param vectors of the picture's largest part.
 * @param pixels of the picture.
 */
export function estimateEncoding(shape: TowerShape, vectors: number, pixels: number): number {
  const tile = (shape.imageSize / shape.patchSize) ** 2;
  const patches = Math.max(shape.type in mostVectors ? 0 : tile, vectors * shape.merge ** 2);
  const { embedding, feedForward, patchSize } = shape;
  // Attention has its input, norm, queries, keys and values, these turned, and what it gives; the inner part three of its own.
  const floats = Math.max(9 * embedding + feedForward, 3 * embedding + 3 * feedForward);
  return 4 * patches * (floats + 12 * patchSize ** 2) + 9 * pixels;
}

/** The same of the largest picture that a projector takes. */
export function estimateLargestEncoding(shape: TowerShape, maxTokens = mostVectors[shape.type] ?? 1): number {
  return estimateEncoding(shape, maxTokens, maxTokens * (shape.merge * shape.patchSize) ** 2);
}
