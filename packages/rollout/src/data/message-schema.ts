import type { ChatMessage } from "@cria/core";
import { z } from "zod";

/** A part of a message. Policies read only text. */
const contentPart = z.looseObject({ type: z.string(), text: z.string().nullish() }).transform((part, context) => {
  if (part.type === "text") return part.text ?? "";
  context.addIssue({ code: "custom", message: "a part of type text", input: part.type, path: ["type"] });
  return z.NEVER;
});

/**
 * A message of a row, in the OpenAI format, where content may be missing only beside calls. The result is what
 * templates see.
 */
export const messageSchema = z
  .looseObject({
    role: z.enum(["system", "user", "assistant", "tool"]),
    content: z.union([z.string(), z.array(contentPart).transform((parts) => parts.join(""))]).nullish(),
  })
  .transform((given, context): ChatMessage => {
    const { role, content, tool_calls } = given;
    const hasCalls = role === "assistant" && Array.isArray(tool_calls) && tool_calls.length > 0;
    if (content == null && !hasCalls) {
      const message = "a text, or a list of texts; null in an assistant message with tool_calls alone";
      context.addIssue({ code: "custom", message, input: content, path: ["content"] });
      return z.NEVER;
    }
    // Parquet writes a null for every key that only other messages have; templates ask whether a key is there.
    const present = Object.entries(given).filter(([, value]) => value !== null);
    return { ...Object.fromEntries(present), role, content: content ?? "" };
  });
