import type { PolicyEngine, ValueEngine } from "@cria/core";

/**
 * Replaces image token ids with those of another engine, because each engine assigns its own. Returns the tokens
 * unchanged if either engine sees no images, or both share them.
 */
export function translateImages(
  tokenIds: ArrayLike<number>,
  from: Pick<PolicyEngine, "images" | "info">,
  to: Pick<ValueEngine, "images">,
): ArrayLike<number> {
  const { images, info } = from;
  if (!images || !to.images || images === to.images) return tokenIds;
  const isVector = (id: number) => id >= info.vocabSize;
  const vectors = new Map<string, Int32Array>();
  const translated = Int32Array.from(tokenIds);
  for (const [t, id] of translated.entries()) {
    if (!isVector(id)) continue;
    const found = images.find(id);
    // The other engine reports the unknown id.
    if (!found) continue;
    const { image } = found.placed;
    const own = vectors.get(image.hash) ?? to.images.place(image).tokenIds.filter(isVector);
    vectors.set(image.hash, own);
    translated[t] = own[found.index]!;
  }
  return translated;
}
