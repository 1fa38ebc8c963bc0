import { fileURLToPath } from "node:url";
import { DataError } from "../errors/data-error.js";
import type { ContentPart } from "../messages.js";
import { type ImageSource, isLoaded } from "./image-source.js";

export interface ReadImageOptions {
  /** Meaning of a string that is no address and has no media type: base64 (default) in programs, or a path in rows. */
  strings?: "base64" | "path";
}

const textTypes = new Set(["text", "input_text", "output_text"]);
const imageTypes = new Set(["image", "image_url", "image-url", "image-data", "input_image"]);
/** Parts that are images only if their media type says so. */
const fileTypes = new Set(["file", "file-data", "media"]);

/**
 * Recognizes an image in the notations of rows, programs and protocols: bytes; `{ bytes }`, `{ path }`, or both, as in
 * datasets of Hugging Face; `{ data, mimeType }`; `{ url }`, an address; `{ image }` with one of these, as in Qwen's
 * tools. It reads and fetches nothing, and refuses no location: `loadImage` does. Null: not an image.
 */
export function toImageSource(value: unknown, options: ReadImageOptions = {}): ImageSource | null {
  if (typeof value === "string") return readText(value, options);
  if (value instanceof URL) return readText(value.href, options);
  const alone = readBytes(value);
  if (alone) return { bytes: alone };
  if (!isRecord(value)) return null;
  const { path, url } = value;
  const bytes = readBytes(value["bytes"]);
  if (isImageRecord(value)) return bytes || !isLoaded(value) ? value : null;
  if (bytes) return { bytes };
  if (typeof path === "string") return { path };
  if (typeof url === "string" || url instanceof URL) return { url: String(url) };
  const { data, image } = value;
  const held = data ?? image;
  const mediaType = findMediaType(value);
  const isBase64 = typeof held === "string" && (held === data || mediaType !== undefined) && !/^[a-z]+:/i.test(held);
  if (isBase64) return { data: held, ...(mediaType === undefined ? {} : { mimeType: mediaType }) };
  return held === undefined || held === null ? null : toImageSource(held, options);
}

/**
 * A part of a message's content in the notation of datasets, the AI SDK, OpenAI, Anthropic or MCP: a text, or an image
 * in any form that `toImageSource` reads. Null: neither.
 */
export function toContentPart(value: unknown, options: ReadImageOptions = {}): ContentPart | null {
  if (typeof value === "string") return { type: "text", text: value };
  if (!isRecord(value) || typeof value["type"] !== "string") return null;
  const { type, text } = value;
  if (textTypes.has(type)) return typeof text === "string" ? { type: "text", text } : null;
  const isImage = imageTypes.has(type) || (fileTypes.has(type) && findMediaType(value)?.startsWith("image/") === true);
  if (!isImage) return null;
  const held = value["image"] ?? value["image_url"] ?? value["source"];
  const image = toImageSource(typeof held === "string" ? { ...value, image: held } : (held ?? value), options);
  return image && { type: "image", image };
}

/**
 * A message's content as texts and images.
 * @throws DataError "data/bad-content" for a part that is neither.
 */
export function toContentParts(
  values: readonly unknown[],
  { subject = "content", ...options }: ReadImageOptions & { subject?: string } = {},
): ContentPart[] {
  return values.map((value, i) => {
    const part = toContentPart(value, options);
    if (part) return part;
    throw new DataError("is neither a text nor an image", {
      code: "data/bad-content",
      subject: `${subject}, part ${i}`,
      expected: '{ type: "text", text } or { type: "image", image }',
      received: isRecord(value) ? `a part of type ${JSON.stringify(value["type"])}` : typeof value,
    });
  });
}

function readText(text: string, { strings = "base64" }: ReadImageOptions): ImageSource {
  if (/^(data|https?):/i.test(text)) return { url: text };
  // A file URL with another host is an address.
  if (/^file:/i.test(text)) return /^file:(\/\/\/|\/[^/])/i.test(text) ? { path: fileURLToPath(text) } : { url: text };
  return strings === "path" ? { path: text } : { data: text };
}

/** Bytes of this process or another context; a buffer becomes a view of it. */
function readBytes(value: unknown): Uint8Array | null {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return ArrayBuffer.isView(value) ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : null;
}

/** The media type under the names of the AI SDK, MCP and Anthropic. */
function findMediaType(value: Record<string, unknown>): string | undefined {
  const type = value["mediaType"] ?? value["mimeType"] ?? value["media_type"];
  return typeof type === "string" ? type : undefined;
}

function isImageRecord(value: object): value is Extract<ImageSource, { hash: string }> {
  const { hash, width, height } = value as Record<string, unknown>;
  return typeof hash === "string" && typeof width === "number" && typeof height === "number";
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
