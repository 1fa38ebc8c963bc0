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
 * The messages of a request with their images in memory; those that have none, and images that were loaded before, are shared. To
 * a model that reads text alone an image in a tool's answer is named, as a policy in training is told: an agent goes on.
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
 * An image of a request, in memory. Files of this machine are never read.
 * @param place in the request, for errors.
 * @throws DataError "chat/bad-image" for one that cannot be taken.
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

/** Encodes the images ahead, so that a damaged file is found before anything is sampled. @throws DataError "chat/bad-image" */
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

/** What is wrong with an image, as said of the request that brought it; other errors as they are. */
function refuseImage(place: string, cause: unknown): unknown {
  if (!(cause instanceof CriaError)) return cause;
  const { subject, expected, received, remedy } = cause;
  // The first line is "<subject>: <summary>".
  const summary = cause.message.split("\n", 1)[0]!.slice(subject.length + 2);
  return new DataError(summary, { code: "chat/bad-image", subject: place, expected, received, remedy, cause });
}
