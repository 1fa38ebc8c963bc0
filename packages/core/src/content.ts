import type { ChatMessage, ContentPart, ImagePart } from "./messages.js";

type Content = ChatMessage["content"];

/** A content's texts, with the result of `image` in place of each image; nothing by default. */
export function contentText(content: Content, image: (part: ImagePart) => string = () => ""): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : image(part))).join("");
}

/** A content's texts for people, with a placeholder for each image: `[image 640 x 480, 3f2a9c01]`. */
export function showContent(content: Content): string {
  return contentText(content, ({ image }) => {
    if (!("hash" in image)) return "[image]";
    return `[image ${image.width} x ${image.height}, ${image.hash.slice(0, 8)}]`;
  });
}

/** The text of the last assistant message; "" when there is none. */
export function findLastAnswer(messages: readonly ChatMessage[]): string {
  return contentText(messages.findLast(({ role }) => role === "assistant")?.content ?? "");
}

/** The images of a content, in order. */
export function listImages(content: Content): ImagePart[] {
  return typeof content === "string" ? [] : content.filter((part) => part.type === "image");
}

/** Texts and images in order; adjacent texts are joined by `separator`. */
export function joinContent(parts: readonly (string | ImagePart)[], separator: string): Content {
  const separated = parts.map((part, i): ContentPart => {
    if (typeof part !== "string") return part;
    return { type: "text", text: typeof parts[i + 1] === "string" ? part + separator : part };
  });
  return toContent(separated);
}

/** Texts and images in order, with adjacent texts joined and empty ones left out; a single text becomes a string. */
export function toContent(parts: readonly ContentPart[]): Content {
  const joined: ContentPart[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (part.type === "image") joined.push(part);
    else if (last?.type === "text") joined[joined.length - 1] = { type: "text", text: last.text + part.text };
    else if (part.text !== "") joined.push(part);
  }
  if (joined.length === 0) return "";
  return joined.length === 1 && joined[0]!.type === "text" ? joined[0]!.text : joined;
}
