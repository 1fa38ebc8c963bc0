import { type ContentPart, listImages } from "@cria/core";
import { toContent, toContentPart, toImageSource } from "@cria/core/internal";
import type { ToolResponse } from "@cria/tools";
import type { ToolOutcome } from "./tool-outcome.js";

/** A tool returned an invalid image. The message continues a sentence after "gave". */
export class UnreadableImage extends Error {}

/**
 * Reads a tool's answer. It is untrusted, so its fields are checked rather than its type.
 * @param seesImages false: images are named instead of shown.
 * @returns null for an invalid answer.
 * @throws UnreadableImage
 */
export function readResponse(
  response: ToolResponse | null | undefined,
  seesImages: boolean,
): Pick<ToolOutcome, "text" | "parts" | "omitted"> | null {
  const given = response?.text ?? "";
  if (!response || typeof given !== "string") return null;
  const parts = seesImages ? readParts(response, given) : [];
  // Texts of parts are joined by line breaks; if the tool also gives `text`, that is used instead.
  const text = given === "" ? readTexts(response.content).join("\n") : given;
  const omitted = nameMedia(response, seesImages);
  return { text, ...(listImages(parts).length > 0 ? { parts } : {}), ...(omitted ? { omitted } : {}) };
}

/** Parts in the tool's order; by default images before the text, as in verl. */
function readParts({ content, image }: ToolResponse, text: string): ContentPart[] {
  if (Array.isArray(content) && content.length > 0) {
    return content.map((given: unknown, i) => {
      const part = toContentPart(given);
      if (part) return part;
      throw new UnreadableImage(`a part ${i} that is neither a text nor an image`);
    });
  }
  const images = image === null || image === undefined ? [] : [image].flat();
  return [
    ...images.map((given: unknown, i): ContentPart => {
      const source = toImageSource(given);
      if (source) return { type: "image", image: source };
      throw new UnreadableImage(`an image ${i} that is none: neither bytes nor base64`);
    }),
    { type: "text", text },
  ];
}

function readTexts(parts: unknown): string[] {
  if (!Array.isArray(parts)) return [];
  return parts.flatMap((given: unknown) => {
    const part = toContentPart(given);
    return part?.type === "text" ? [part.text] : [];
  });
}

/** Replaces the texts of the parts by `text`. Images are never truncated; they then precede the text. */
export function withText(parts: readonly ContentPart[], text: string): ContentPart[] | string {
  return toContent([...listImages([...parts]), { type: "text", text }]);
}

/** Names the parts of an answer that the policy cannot see; undefined if it sees all. */
function nameMedia({ content, image, video, audio }: ToolResponse, seesImages: boolean): ToolOutcome["omitted"] {
  const count = (given: unknown) => (Array.isArray(given) ? given.length : Number(given != null));
  const shown = Array.isArray(content) && content.length > 0;
  const images = shown ? content.length - readTexts(content).length : count(image);
  const counts = Object.entries({ image: seesImages ? 0 : images, video: count(video), audio: count(audio) });
  const found = counts.filter(([, n]) => n > 0);
  if (found.length === 0) return undefined;
  return {
    text: found.map(([kind, n]) => `[${n === 1 ? kind : `${n} ${kind}s`} omitted]`).join(" "),
    count: found.reduce((sum, [, n]) => sum + n, 0),
  };
}
