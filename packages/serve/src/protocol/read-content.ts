import type { ChatMessage, ImagePart } from "@cria/core";
import { joinContent, toContentPart } from "@cria/core/internal";
import { refuseField } from "../request-error.js";
import { getOwn, showValue } from "./read-fields.js";
import { readPart, readText } from "./read-text.js";

/** An image of a request, and its place in the body. It is loaded after the whole request has been read. */
export interface GivenImage {
  part: ImagePart;
  field: string;
}

const IMAGE_TYPES = ["image_url", "input_image", "image"];

/**
 * The content of a message that may contain images.
 * @param separator between adjacent texts.
 * @param field the content's place in the body, for errors.
 * @param images gets the content's images, in their order.
 * @throws RequestError 400 for a part that is neither a text nor an image.
 */
export function readContent(
  content: unknown,
  field: string,
  separator: string,
  images: GivenImage[],
): ChatMessage["content"] {
  if (!Array.isArray(content)) return readText(content, field, separator);
  return joinContent(
    content.map((part: unknown, i) => readContentPart(part, `${field}.${i}`, images)),
    separator,
  );
}

/**
 * A part as a text or an image.
 * @throws RequestError 400
 */
export function readContentPart(part: unknown, field: string, images: GivenImage[]): string | ImagePart {
  if (!IMAGE_TYPES.includes(getOwn(part, "type") as string)) return readPart(part, field);
  const read = toContentPart(part);
  // Base64 without a type does not tell the image's format.
  if (read?.type !== "image" || ("data" in read.image && read.image.mimeType === undefined))
    throw refuseField(
      field,
      "an image with its data: an address data:image/png;base64,..., or base64 with a media_type",
      showValue(part),
    );
  images.push({ part: read, field });
  return read;
}
