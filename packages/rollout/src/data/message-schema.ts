import type { ChatMessage, ContentPart } from "@cria/core";
import { toContent, toContentPart } from "@cria/core/internal";
import { z } from "zod";
import { isImagePlace, nextImage } from "./place-images.js";

/** A part of a message: a text, an image, or a placeholder for the row's next image. */
const contentPart = z.unknown().transform((part, context): ContentPart => {
  if (isImagePlace(part)) return { type: "image", image: nextImage };
  // Parquet fills keys that only other parts have with null.
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown };
  const read = type === "text" && text == null ? { type, text: "" } : toContentPart(part, { strings: "path" });
  if (read) return read as ContentPart;
  const isOther = type === "text" || type === "image";
  context.addIssue(
    isOther
      ? { code: "custom", message: `${type === "text" ? "a text" : "an image"} in it`, input: part }
      : { code: "custom", message: "a part of type text or image", input: type, path: ["type"] },
  );
  return z.NEVER;
});

/** A row's message in the OpenAI format; content may be missing only beside calls. The result is what templates see. */
export const messageSchema = z
  .looseObject({
    role: z.enum(["system", "user", "assistant", "tool"]),
    content: z.union([z.string(), z.array(contentPart).transform(toContent)]).nullish(),
  })
  .transform((given, context): ChatMessage => {
    const { role, content, tool_calls } = given;
    const hasCalls = role === "assistant" && Array.isArray(tool_calls) && tool_calls.length > 0;
    if (content == null && !hasCalls) {
      const message = "a text, or a list of texts and images; null in an assistant message with tool_calls alone";
      context.addIssue({ code: "custom", message, input: content, path: ["content"] });
      return z.NEVER;
    }
    // Parquet fills keys that only other messages have with null; templates test whether a key exists.
    const present = Object.entries(given).filter(([, value]) => value !== null);
    return { ...Object.fromEntries(present), role, content: content ?? "" };
  });
