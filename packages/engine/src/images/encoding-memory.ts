import type { GgufHeader } from "../gguf-files/read-gguf.js";

/** Header fields of a projector that determine the memory for encoding. */
export interface TowerShape {
  type: string;
  /** In pixels: side of a patch, and of the square that a tower of fixed size sees. */
  patchSize: number;
  imageSize: number;
  embedding: number;
  feedForward: number;
  /** Patches per side that become one vector. */
  merge: number;
}

/** Default limit of bytes for encoding one picture: 4,096 tokens of Qwen2.5-VL take half of it. */
export const defaultEncodeMemory = 2 * 2 ** 30;

/** Most vectors of a picture, by llama.cpp's limits, for families that take pictures at their own size. */
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
 * Peak bytes for encoding a picture, beyond the projector and the vectors: what one layer of the tower holds for each
 * patch, and the pixels. Towers see one tile after the other.
 * @param vectors of the picture's largest part.
 * @param pixels of the picture.
 */
export function estimateEncoding(shape: TowerShape, vectors: number, pixels: number): number {
  const tile = (shape.imageSize / shape.patchSize) ** 2;
  const patches = Math.max(shape.type in mostVectors ? 0 : tile, vectors * shape.merge ** 2);
  const { embedding, feedForward, patchSize } = shape;
  // Attention holds its input, norm, queries, keys and values, the last three rotated, and its output; the inner part
  // adds three of its size.
  const floats = Math.max(9 * embedding + feedForward, 3 * embedding + 3 * feedForward);
  return 4 * patches * (floats + 12 * patchSize ** 2) + 9 * pixels;
}

/** The same for the largest picture that a projector takes. */
export function estimateLargestEncoding(shape: TowerShape, maxTokens = mostVectors[shape.type] ?? 1): number {
  return estimateEncoding(shape, maxTokens, maxTokens * (shape.merge * shape.patchSize) ** 2);
}
