import { loadGivenImage, takeTurn } from "@cria/rollout/internal";
import type { ChatCall } from "../protocol/protocol.js";
import { refuseField } from "../request-error.js";
import type { Endpoint } from "./endpoint.js";

/**
 * Loads a request's images, one after another.
 * @throws DataError "chat/bad-image", RequestError 400 for more images than the limit.
 */
export async function loadImages({ images }: ChatCall, { model, limits, fetchImage }: Endpoint): Promise<void> {
  if (images.length > limits.images)
    throw refuseField(
      images[limits.images]!.field,
      `at most ${limits.images} images in a request`,
      `${images.length} images`,
    );
  for (const { part, field } of images) {
    part.image = await loadGivenImage(part.image, field, model.images, { fetch: fetchImage });
    await takeTurn();
  }
}
