import { type ChatMessage, type ImageEncoder, type LoadedImage, listImages } from "@cria/core";
import { isLoaded } from "@cria/core/internal";

/** The images of contents, all of them in memory. */
function listLoaded(contents: readonly ChatMessage["content"][]): LoadedImage[] {
  return contents.flatMap((content) => listImages(content).map(({ image }) => image)).filter(isLoaded);
}

/** Number of tokens of all images in the contents. */
export function countImageTokens(
  contents: readonly ChatMessage["content"][],
  images: ImageEncoder | undefined,
): number {
  if (!images) return 0;
  return listLoaded(contents).reduce((sum, image) => sum + images.countTokens(image), 0);
}

/** Decodes and encodes a content's images ahead of use. @throws EngineError "engine/bad-image" for a damaged file. */
export async function prepareImages(
  content: ChatMessage["content"],
  images: ImageEncoder | undefined,
  signal?: AbortSignal,
): Promise<void> {
  for (const image of listLoaded([content])) await images?.prepare(image, { signal });
}
