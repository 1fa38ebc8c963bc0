import { type ChatMessage, type ContentPart, type LoadImageOptions, listImages, loadImage } from "@cria/core";
import { isLoaded } from "@cria/core/internal";

/** Limits of images, and the function that fetches web addresses, if that is allowed. */
export type ImageAccess = Pick<LoadImageOptions, "maxBytes" | "maxPixels" | "fetch">;

type Content = ChatMessage["content"];

/** Loads the images of a content into memory. @throws DataError as `loadImage` does. */
export async function loadContent(content: Content, options: LoadImageOptions): Promise<Content> {
  if (isHeld(content)) return content;
  return Promise.all(
    (content as ContentPart[]).map(async (part) =>
      part.type === "image" ? { type: "image" as const, image: await loadImage(part.image, options) } : part,
    ),
  );
}

/**
 * Loads the images of messages into memory; returns the same array if there is nothing to load. @throws DataError as
 * `loadImage` does.
 */
export async function loadMessages<M extends ChatMessage>(
  messages: readonly M[],
  options: LoadImageOptions,
): Promise<readonly M[]> {
  if (messages.every(({ content }) => isHeld(content))) return messages;
  return Promise.all(
    messages.map(async (message) => ({ ...message, content: await loadContent(message.content, options) })),
  );
}

function isHeld(content: Content): boolean {
  return listImages(content).every(({ image }) => isLoaded(image));
}
