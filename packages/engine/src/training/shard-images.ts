import { EngineError, type ShardImage } from "@cria/core";
import type { ImageStore } from "../images/image-store.js";

/**
 * Calls `work` with this engine's ids for the vectors that a shard numbers itself, while their values are in memory;
 * undefined for a shard of text only.
 * @throws EngineError when this engine takes no images, or lays these out differently than the engine that planned.
 */
export async function withVectors<T>(
  store: ImageStore | undefined,
  images: readonly ShardImage[] = [],
  signal: AbortSignal | undefined,
  work: (vectors: Int32Array | undefined) => Promise<T>,
): Promise<T> {
  if (images.length === 0) return work(undefined);
  if (!store) throw takesNoImages();
  checkNumbering(images, store.firstId);
  const placed = images.map(({ image }) => store.place(image));
  const release = await store.pin(placed, signal);
  try {
    const ids = images.flatMap((image, i) => {
      const own = store.vectorIds(placed[i]!);
      if (own.length !== image.count) throw placedOtherwise(image, own.length);
      return [...own];
    });
    return await work(Int32Array.from(ids));
  } finally {
    release();
  }
}

function checkNumbering(images: readonly ShardImage[], start: number): void {
  let next = start;
  for (const { first, count } of images) {
    if (first !== next) {
      throw new EngineError("has gaps between its images' ids", {
        code: "engine/bad-batch",
        subject: "shard",
        expected: `an image from ${next} on`,
        received: `one from ${first} on`,
      });
    }
    next += count;
  }
}

function takesNoImages(): EngineError {
  return new EngineError("takes no images", {
    code: "engine/no-images",
    subject: "model",
    expected: "a model that was loaded with a projector",
    received: "a micro-batch with images",
    remedy: "load it with mmproj",
  });
}

function placedOtherwise({ image, count }: ShardImage, own: number): EngineError {
  return new EngineError("has another number of vectors in this engine", {
    code: "engine/bad-batch",
    subject: `image ${image.hash.slice(0, 12)}`,
    expected: `${count}, as in the engine that planned the micro-batch`,
    received: `${own}`,
    remedy: "load all engines with the same projector, imageMinTokens and imageMaxTokens",
  });
}
