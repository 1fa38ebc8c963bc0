import { access } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type ChatMessage,
  type ContentPart,
  DataError,
  type ImageMimeType,
  type ImageRecord,
  type ImageSource,
  type LoadedImage,
  listImages,
  loadImage,
  writeFileAtomically,
} from "@cria/core";
import { isLoaded, showContent, toImageRecord } from "@cria/core/internal";
import type { DumpLine } from "./dump-line.js";

const extensions: Record<ImageMimeType, string> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "image/bmp": "bmp",
  "image/gif": "gif",
};

/** Path of an image's file relative to its dump: `images/<hash>.<extension>`. */
export function nameImageFile({ hash, mimeType }: Pick<ImageRecord, "hash" | "mimeType">): string {
  return join("images", `${hash}.${extensions[mimeType]}`);
}

/** Writes the images of lines and their trajectories, each once, before the lines that name it. */
export async function writeDumpImages(
  dump: string,
  lines: readonly Partial<Pick<DumpLine, "messages" | "segments">>[],
  more: readonly LoadedImage[] = [],
): Promise<void> {
  const shown = lines.flatMap(({ messages = [], segments = [] }) => [
    messages,
    ...segments.map((part) => part.messages),
  ]);
  const images = shown.flat().flatMap(({ content }) => listImages(content).map(({ image }) => image));
  const files = new Map<string, LoadedImage>();
  for (const image of [...images.filter(isLoaded), ...more]) files.set(image.hash, image);
  for (const image of files.values()) {
    const file = join(dirname(dump), nameImageFile(image));
    const isThere = await access(file).then(
      () => true,
      () => false,
    );
    if (!isThere) await writeFileAtomically(file, image.bytes);
  }
}

/** Messages as JSON: images become records with snake_case names. */
export function describeMessages(messages: readonly ChatMessage[]): unknown[] {
  return messages.map((message) =>
    typeof message.content === "string"
      ? message
      : {
          ...message,
          content: message.content.map((part) => (part.type === "text" ? part : describePart(part.image))),
        },
  );
}

function describePart(image: ImageSource): unknown {
  // The image's file could not be read, so it has no record.
  if (!("hash" in image)) return { type: "text", text: showContent([{ type: "image", image }]) };
  const { mimeType, ...record } = toImageRecord(image);
  return { type: "image", image: { ...record, mime_type: mimeType } };
}

/** Reads messages back from JSON; null for anything else. */
export function readMessages(given: unknown): ChatMessage[] | null {
  if (!Array.isArray(given)) return null;
  const messages = given.map(readMessage);
  return messages.every((message) => message !== null) ? messages : null;
}

function readMessage(given: unknown): ChatMessage | null {
  const { role, content } = (given ?? {}) as { role?: unknown; content?: unknown };
  if (typeof given !== "object" || typeof role !== "string") return null;
  if (typeof content === "string") return given as ChatMessage;
  const parts = Array.isArray(content) ? content.map(readPart) : [null];
  return parts.every((part) => part !== null) ? { ...(given as ChatMessage), content: parts } : null;
}

function readPart(given: unknown): ContentPart | null {
  const { type, text, image } = (given ?? {}) as { type?: unknown; text?: unknown; image?: unknown };
  if (type === "text") return typeof text === "string" ? { type, text } : null;
  if (type !== "image") return null;
  const { hash, width, height, mime_type: mimeType } = (image ?? {}) as Record<string, unknown>;
  // The hash becomes a file name.
  const isRecord =
    typeof hash === "string" && /^[0-9a-f]{64}$/.test(hash) && Object.hasOwn(extensions, String(mimeType));
  if (!isRecord || typeof width !== "number" || typeof height !== "number") return null;
  return { type, image: { hash, width, height, mimeType: mimeType as ImageMimeType } };
}

/** Reads the images of a dump's conversations, each once. */
export class DumpImages {
  private readonly loaded = new Map<string, Promise<LoadedImage>>();

  /** @param dump path of the dump. */
  constructor(private readonly dump: string) {}

  /** @throws DataError "data/bad-image" when its file is missing, or has another hash. */
  load(record: ImageRecord): Promise<LoadedImage> {
    const known = this.loaded.get(record.hash) ?? this.read(record);
    this.loaded.set(record.hash, known);
    return known;
  }

  /** Loads the images of a line's messages into memory. @throws DataError as `load` does. */
  async fill(line: DumpLine): Promise<DumpLine> {
    if (!line.images) return line;
    const { segments } = line;
    return {
      ...line,
      messages: await this.fillMessages(line.messages),
      ...(segments
        ? {
            segments: await Promise.all(
              segments.map(async (part) => ({ ...part, messages: await this.fillMessages(part.messages) })),
            ),
          }
        : {}),
    };
  }

  private fillMessages(messages: readonly ChatMessage[]): Promise<ChatMessage[]> {
    return Promise.all(
      messages.map(async (message) => {
        if (typeof message.content === "string") return message;
        const parts = message.content.map(async (part): Promise<ContentPart> => {
          if (part.type === "text" || !("hash" in part.image)) return part;
          return { type: "image", image: await this.load(part.image) };
        });
        return { ...message, content: await Promise.all(parts) };
      }),
    );
  }

  private async read(record: ImageRecord): Promise<LoadedImage> {
    const path = nameImageFile(record);
    const subject = `image of ${this.dump}`;
    // Dumped images were within the limits of their run.
    const noLimits = { maxBytes: Number.POSITIVE_INFINITY, maxPixels: Number.POSITIVE_INFINITY };
    const image = await loadImage({ path }, { folder: dirname(this.dump), subject, ...noLimits });
    if (image.hash === record.hash) return image;
    throw new DataError("is another file than was dumped", {
      code: "data/bad-image",
      subject,
      expected: `${path} with the SHA-256 of its name`,
      received: image.hash,
    });
  }
}
