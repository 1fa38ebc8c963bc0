import { type ChatMessage, type ContentPart, DataError, type ImageSource, listImages } from "@cria/core";
import { toContent, toImageSource } from "@cria/core/internal";

/** Stands in a message for the next image of the row's column. */
export const nextImage: ImageSource = Object.freeze({ path: "" });

const mark = "<image>";
const imageKeys = ["image", "image_url", "source", "data", "url", "bytes", "path"] as const;

/** Whether a part is `{ type: "image" }` alone. */
export function isImagePlace(part: unknown): boolean {
  if (typeof part !== "object" || part === null || (part as { type?: unknown }).type !== "image") return false;
  return imageKeys.every((key) => (part as Record<string, unknown>)[key] == null);
}

/**
 * A row's column of images. A single image is a list of one.
 * @throws DataError naming the entry that is none.
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
 * A row's messages with the images of its column where its texts say `<image>`, as verl has it, or a part is `{ type: "image" }`
 * alone. Without a column `<image>` is a text as any other.
 * @param subject the row's column, for errors.
 * @throws DataError unless there are as many places as images.
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

/** Whether messages show an image. */
export function haveImages(messages: readonly ChatMessage[]): boolean {
  return messages.some(({ content }) => listImages(content).length > 0);
}
