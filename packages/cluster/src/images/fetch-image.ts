import { ClusterError, type ImageLimits, type LoadedImage, loadImage } from "@cria/core";
import type { Blobs } from "../bus/job-bus.js";
import { cleanText } from "../bus/job-record.js";

/**
 * Puts an image's file into the bus.
 * @throws TypeError for an image whose file has another SHA-256; ClusterError of `blobs.put`.
 */
export async function storeImage(blobs: Pick<Blobs, "put">, { bytes, hash }: LoadedImage): Promise<void> {
  if ((await blobs.put(bytes)) !== hash)
    throw new TypeError(`an image cannot be sent: its file does not have its SHA-256 ${hash.slice(0, 12)}`);
}

/**
 * An image's file from the bus, checked like a row's image.
 * @throws ClusterError "cluster/invalid-message" for a file that is no image, or beyond the limits; errors of
 * `blobs.get`, which compares the SHA-256.
 */
export async function fetchImage(blobs: Pick<Blobs, "get">, sha256: string, limits: ImageLimits): Promise<LoadedImage> {
  const bytes = await blobs.get(sha256);
  const subject = `image ${sha256.slice(0, 12)}`;
  try {
    return await loadImage({ bytes }, { ...limits, subject });
  } catch (cause) {
    throw new ClusterError("is refused", {
      code: "cluster/invalid-message",
      subject,
      received: cleanText((cause as Error).message),
      cause,
    });
  }
}
