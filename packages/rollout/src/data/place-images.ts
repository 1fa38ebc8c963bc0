import { type ChatMessage, type ContentPart, DataError, type ImageSource, listImages } from "@cria/core";
import { toContent, toImageSource } from "@cria/core/internal";

/** Placeholder in a message for the next image of the row's column. */
export const nextImage: ImageSource = Object.freeze({ path: "" });

const mark = "<image>";
const imageKeys = ["image", "image_url", "source", "data", "url", "bytes", "path"] as const;

/** True for a part `{ type: "image" }` without a source. */
export function isImagePlace(part: unknown): boolean {
  if (typeof part !== "object" || part === null || (part as { type?: unknown }).type !== "image") return false;
  return imageKeys.every((key) => (part as Record<string, unknown>)[key] == null);
}

/**
 * Reads a row's image column. A single image counts as a list of one.
 * @throws DataError naming the invalid entry.
 */
export function readImages(column: unknown, subject: string): ImageSource[] {
  if (column === null || column === undefined) return [];
  return [column].flat().map((entry: unknown, i) => {
    const image = toImageSource(entry, { strings: "path" });
    if (image) return image;
    throw new DataError("is no image", {
      code: "data/bad-row",
      subject: `${subject}[${i}]`,
      expected: "{ bytes }, { path }, a path, an address or { data, mimeType }",
      received:
        entry === null ? "null" : typeof entry === "object" ? `keys ${Object.keys(entry!).join(", ")}` : typeof entry,
    });
  });
}

/**
 * Inserts the images of a row's column into its messages, at each `<image>` in a text (as in verl) and each part `{
 * type: "image" }` without a source. Without a column, `<image>` is ordinary text.
 * @param subject the row's column, for errors.
 * @throws DataError unless placeholders and images are equally many.
 */
export function placeImages(
  messages: readonly ChatMessage[],
  images: readonly ImageSource[],
  subject: string,
): ChatMessage[] {
  const rest = [...images];
  let places = 0;
  const next = (): ContentPart => {
    places++;
    return { type: "image", image: rest.shift() ?? nextImage };
  };
  const split = (text: string) =>
    text.split(mark).flatMap((piece, i): ContentPart[] => [...(i > 0 ? [next()] : []), { type: "text", text: piece }]);
  const placed = messages.map((message): ChatMessage => {
    const { content } = message;
    const parts: ContentPart[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const filled = parts.flatMap((part) => {
      if (part.type === "text") return images.length > 0 ? split(part.text) : [part];
      return part.image === nextImage ? [next()] : [part];
    });
    return typeof content === "string" && images.length === 0 ? message : { ...message, content: toContent(filled) };
  });
  if (places === images.length) return placed;
  throw new DataError("has not as many images as its messages have places for", {
    code: "data/bad-row",
    subject,
    expected: `${places} images, one for each ${mark} or { type: "image" } of the messages`,
    received: `${images.length} images`,
  });
}

/** True if any message contains an image. */
export function haveImages(messages: readonly ChatMessage[]): boolean {
  return messages.some(({ content }) => listImages(content).length > 0);
}
