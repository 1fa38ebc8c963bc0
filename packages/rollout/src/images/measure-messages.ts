import { type ChatMessage, type ContentPart, type ImageRecord, type LoadImageOptions, listImages } from "@cria/core";
import { measureImage, toContent } from "@cria/core/internal";
import { isBadImage } from "../is-fatal.js";

/** Replaces the images of messages by records of their sizes; drops unreadable images. */
export async function measureMessages(
  messages: readonly ChatMessage[],
  options: LoadImageOptions,
): Promise<ChatMessage[]> {
  const measured: ChatMessage[] = [];
  for (const message of messages) {
    const content = listImages(message.content).length === 0 ? message.content : await measureContent(message, options);
    measured.push({ ...message, content });
  }
  return measured;
}

/** Messages without their images. */
export function withoutImages(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.map((message) =>
    typeof message.content === "string"
      ? message
      : { ...message, content: toContent(message.content.filter(({ type }) => type === "text")) },
  );
}

async function measureContent({ content }: ChatMessage, options: LoadImageOptions): Promise<ChatMessage["content"]> {
  const parts: ContentPart[] = [];
  for (const part of content as ContentPart[]) {
    if (part.type === "text") {
      parts.push(part);
      continue;
    }
    try {
      parts.push({ type: "image", image: toSize(await measureImage(part.image, options)) });
    } catch (error) {
      if (!isBadImage(error)) throw error;
    }
  }
  return toContent(parts);
}

function toSize({ width, height }: { width: number; height: number }): ImageRecord {
  return { hash: "", width, height, mimeType: "image/png" };
}
