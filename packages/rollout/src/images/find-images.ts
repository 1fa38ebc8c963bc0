import { DataError, type PolicyEngine, type TrajectoryImage } from "@cria/core";

type SeeingEngine = Pick<PolicyEngine, "images" | "info">;

/** Stands in for image-vector ids, which are only valid within one process. */
export const VECTOR = -1;

/** Finds the images among tokens, in order. For an image that was cut, the remaining stretch. */
export function findImages(tokenIds: ArrayLike<number>, { images, info }: SeeingEngine): TrajectoryImage[] {
  const found: TrajectoryImage[] = [];
  if (!images) return found;
  for (let t = 0; t < tokenIds.length; ) {
    const vector = tokenIds[t]! >= info.vocabSize ? images.find(tokenIds[t]!) : undefined;
    if (!vector) {
      t++;
      continue;
    }
    const { image, tokenIds: own } = vector.placed;
    const at = own.indexOf(tokenIds[t]!);
    const before = found.at(-1);
    const least = before ? before.start + before.length : 0;
    let start = t;
    let from = at;
    while (start > least && from > 0 && tokenIds[start - 1] === own[from - 1]) {
      start--;
      from--;
    }
    let end = t;
    for (let i = at; i < own.length && end < tokenIds.length && tokenIds[end] === own[i]; i++) end++;
    found.push({ image, start, length: end - start });
    t = end;
  }
  return found;
}

/** Replaces image-vector ids by `VECTOR`, the form for files and other processes. */
export function hideVectors(tokenIds: ArrayLike<number>, vocabSize: number): number[] {
  return Array.from(tokenIds, (id) => (id >= vocabSize ? VECTOR : id));
}

/**
 * Replaces `VECTOR` by the ids that the images have in this process.
 * @param subject owner of the tokens, for errors.
 * @throws DataError if an image has other tokens here, because of another projector or other token limits.
 */
export function showVectors(
  tokenIds: ArrayLike<number>,
  images: readonly TrajectoryImage[],
  engine: SeeingEngine,
  subject: string,
): Int32Array {
  const shown = Int32Array.from(tokenIds);
  for (const { image, start, length } of images) {
    const own = engine.images?.place(image).tokenIds ?? new Int32Array(0);
    const isSame =
      own.length === length && own.every((id, i) => shown[start + i] === (id >= engine.info.vocabSize ? VECTOR : id));
    if (!isSame) throw refuseImage(subject, length, own.length);
    shown.set(own, start);
  }
  const rest = shown.indexOf(VECTOR);
  if (rest >= 0) throw refuseImage(`${subject}, token ${rest}`, 1, 0);
  return shown;
}

function refuseImage(subject: string, there: number, here: number): DataError {
  return new DataError("has images with other tokens than this model makes of them", {
    code: "data/other-images",
    subject,
    expected: `images of ${there} tokens, as they were`,
    received: here === 0 ? "none" : `${here} tokens, or others`,
    remedy: "use the projector (model.mmproj) and the limits of tokens that they were made with",
  });
}
