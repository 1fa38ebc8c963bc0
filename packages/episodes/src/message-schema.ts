import type { ChatMessage, LoadedImage } from "@cria/core";
import { z } from "zod";

/**
 * Checks a value and returns it unchanged: a schema of objects would return copies with reordered keys, and
 * templates print messages in key order.
 */
export const asItCame = <T>(schema: z.ZodType | ((value: unknown) => z.ZodType)): z.ZodType<T> =>
  z.unknown().superRefine((value, context) => {
    const { error } = (typeof schema === "function" ? schema(value) : schema).safeParse(value);
    for (const { code: _, ...issue } of error?.issues ?? [])
      context.addIssue({ code: "custom", message: issue.message, path: issue.path, input: undefined });
  }) as unknown as z.ZodType<T>;

/** True for an image whose file is in memory. */
export function isImage(value: unknown): value is LoadedImage {
  if (typeof value !== "object" || value === null || !("hash" in value) || !("bytes" in value)) return false;
  const { hash, bytes, width, height, mimeType } = value as Partial<Record<keyof LoadedImage, unknown>>;
  return (
    typeof hash === "string" &&
    /^[0-9a-f]{64}$/.test(hash) &&
    bytes instanceof Uint8Array &&
    typeof width === "number" &&
    typeof height === "number" &&
    typeof mimeType === "string"
  );
}

// The message of each schema is the `expected` part of an error (`readFields`).

export const text = z.string("a text").max(16 * 1024 * 1024, "a text of at most 16 Mi characters");
/** An image in memory; agent loops get them from `context.loadImage`. */
export const image = z.custom<LoadedImage>(isImage, "an image that is loaded");

export const listOf = <T extends z.ZodType>(entry: T, most: number) =>
  z.array(entry, "a list").max(most, `a list of at most ${most} entries`);

const parts = listOf(
  z.discriminatedUnion(
    "type",
    [
      z.looseObject({ type: z.literal("text"), text }, "an object"),
      z.looseObject({ type: z.literal("image"), image }, "an object"),
    ],
    "a part of type text or image",
  ),
  100_000,
);
/** Not a union: its errors would not say what is wrong with a part. */
const content = asItCame<ChatMessage["content"]>((value) => (Array.isArray(value) ? parts : text));

const roles = ["system", "user", "assistant", "tool"] as const;
const callArguments = z.union([text, z.record(z.string(), z.unknown())], "a text, or an object");
const call = z.looseObject(
  {
    id: text.nullish(),
    type: z.literal("function", "function").nullish(),
    function: z.looseObject({ name: text, arguments: callArguments }, "an object"),
  },
  "an object",
);

/** Messages as templates and records see them. They keep the order of their keys. */
export const messagesSchema = asItCame<ChatMessage[]>(
  listOf(
    z.looseObject(
      {
        role: z.enum(roles, roles.join(", ")),
        content,
        name: text.nullish(),
        tool_calls: listOf(call, 10_000).nullish(),
        tool_call_id: text.nullish(),
        reasoning_content: text.nullish(),
      },
      "an object",
    ),
    100_000,
  ),
);
