import type { LoadedImage, PolicyEngine, Trajectory, TrajectoryImage } from "@cria/core";
import { findImages } from "@cria/rollout/internal";

type WithImages = Pick<Trajectory, "tokenIds" | "images">;
type SeeingEngine = Pick<PolicyEngine, "images"> & { info: Pick<PolicyEngine["info"], "vocabSize"> };

/**
 * A conversation as messages carry it: ids of vectors are only valid within one process. -1 - i stands for the i-th
 * vector of its image (from 0).
 */
export function hideIds<T extends WithImages>(held: T, { images: encoder, info: { vocabSize } }: SeeingEngine): T {
  const { tokenIds, images = [] } = held;
  if (images.length === 0) return held;
  const hidden = Int32Array.from(tokenIds);
  for (const { start, length } of images) {
    const first = tokenIds.subarray(start, start + length).findIndex((id) => id >= vocabSize);
    const { placed } = encoder!.find(tokenIds[start + first]!)!;
    // A cut image may lack its first tokens.
    const from = placed.tokenIds.indexOf(tokenIds[start + first]!) - first;
    for (let i = first; i < length; i++) if (tokenIds[start + i]! >= vocabSize) hidden[start + i] = -1 - (from + i);
  }
  return { ...held, tokenIds: hidden };
}

/**
 * Restores the ids that the images have in this process.
 * @param refuse is called, and throws, where the tokens do not match the images.
 */
export function showIds<T extends WithImages>(
  given: T,
  engine: SeeingEngine,
  refuse: (expected: string, received?: unknown) => never,
): T {
  const { tokenIds, images = [] } = given;
  const { vocabSize } = engine.info;
  if (images.length > 0 && !engine.images) refuse("no image: the model sees none", `${images.length} images`);
  const shown = Int32Array.from(tokenIds);
  for (const { image, start, length } of images) {
    if (start + length > tokenIds.length)
      refuse(`images within ${tokenIds.length} tokens`, `${start} to ${start + length}`);
    const own = placeTokens(engine, image, refuse);
    for (let t = start; t < start + length; t++) {
      if (shown[t]! >= 0) continue;
      const id = own[-1 - shown[t]!]!;
      // Undefined beyond the image's end.
      if (!(id >= vocabSize)) refuse("vectors of the image at this place", tokenIds[t]);
      shown[t] = id;
    }
  }
  const outside = shown.findIndex((id) => id < 0);
  if (outside >= 0) refuse("vectors only in images", `token ${outside} is ${tokenIds[outside]}`);
  if (images.length === 0) return given;
  const found = findImages(shown, engine as Pick<PolicyEngine, "images" | "info">);
  if (!areEqual(found, images)) refuse("images at the places of their tokens", describe(images));
  return { ...given, tokenIds: shown, images: found };
}

function placeTokens(
  { images }: SeeingEngine,
  image: LoadedImage,
  refuse: (expected: string, received?: unknown) => never,
): Int32Array {
  try {
    return images!.place(image).tokenIds;
  } catch (error) {
    return refuse("images that the projector accepts", (error as Error).message);
  }
}

const areEqual = (found: readonly TrajectoryImage[], said: readonly TrajectoryImage[]) =>
  found.length === said.length &&
  found.every(
    ({ image, start, length }, i) =>
      image.hash === said[i]!.image.hash && start === said[i]!.start && length === said[i]!.length,
  );

const describe = (images: readonly TrajectoryImage[]) =>
  images
    .slice(0, 10)
    .map(({ image, start, length }) => `${image.hash.slice(0, 12)} at ${start}, ${length} tokens`)
    .join("; ");
