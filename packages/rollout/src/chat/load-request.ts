import {
  type ChatMessage,
  CriaError,
  DataError,
  type ImageEncoder,
  type ImageSource,
  type LoadedImage,
  loadImage,
} from "@cria/core";
import { toContent } from "@cria/core/internal";
import type { ImageAccess } from "../images/load-content.js";
import { prepareImages } from "../images/prepare-images.js";

/**
 * Loads the images of a request into memory. Messages without images, and images already loaded, are shared. For a
 * text-only model, an image in a tool's answer is replaced by its name, as in training, so that the agent can
 * continue.
 */
export function loadRequest(
  messages: readonly ChatMessage[],
  encoder: ImageEncoder | undefined,
  access: ImageAccess = {},
): Promise<ChatMessage[]> {
  return Promise.all(
    messages.map(async (message, i) => {
      if (typeof message.content === "string") return message;
      const parts = message.content.map(async (part, j) => {
        if (part.type === "text") return part;
        if (!encoder && message.role === "tool") return { type: "text" as const, text: "[image omitted]" };
        const place = `messages[${i}].content[${j}]`;
        return { type: "image" as const, image: await loadGivenImage(part.image, place, encoder, access) };
      });
      return { ...message, content: toContent(await Promise.all(parts)) };
    }),
  );
}

/**
 * Loads one image of a request. Local files are never read.
 * @param place position in the request, for errors.
 * @throws DataError "chat/bad-image" for an unusable image.
 */
export async function loadGivenImage(
  source: ImageSource,
  place: string,
  encoder: ImageEncoder | undefined,
  access: ImageAccess,
): Promise<LoadedImage> {
  if (!encoder) {
    throw new DataError("is an image", {
      code: "chat/bad-image",
      subject: place,
      expected: "a text: this model reads text alone",
      received: "an image",
      remedy: "leave images out, or load the model with its projector (mmproj)",
    });
  }
  try {
    const image = await loadImage(source, access);
    encoder.countTokens(image);
    return image;
  } catch (cause) {
    throw refuseImage(place, cause);
  }
}

/** Encodes the images ahead of sampling, so that a damaged file is found first. @throws DataError "chat/bad-image" */
export async function prepareRequest(
  messages: readonly ChatMessage[],
  encoder: ImageEncoder | undefined,
): Promise<void> {
  for (const { content } of messages) {
    await prepareImages(content, encoder).catch((cause: unknown) => {
      throw refuseImage("an image of messages", cause);
    });
  }
}

/** Turns an image error into an error about the request; returns other errors unchanged. */
function refuseImage(place: string, cause: unknown): unknown {
  if (!(cause instanceof CriaError)) return cause;
  const { summary, expected, received, remedy } = cause;
  return new DataError(summary, { code: "chat/bad-image", subject: place, expected, received, remedy, cause });
}
