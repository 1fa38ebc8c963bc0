import type { PolicyEngine, ValueEngine } from "@cria/core";

/**
 * Tokens with the ids that their images have in another engine, which gives its own. The tokens themselves where they have no
 * images, or the engine is the same.
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
    // The other engine says what is wrong with it.
    if (!found) continue;
    const { image } = found.placed;
    const own = vectors.get(image.hash) ?? to.images.place(image).tokenIds.filter(isVector);
    vectors.set(image.hash, own);
    translated[t] = own[found.index]!;
  }
  return translated;
}
