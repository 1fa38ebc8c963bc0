import type { ChatMessage, LoadedImage } from "@cria/core";
import { z } from "zod";
import { isImage } from "./pack.js";

/**
 * Checks a value and returns it unchanged: a schema of objects would return copies with keys in the schema's order, and
 * templates print messages in their own order.
 */
export const asItCame = <T>(schema: z.ZodType | ((value: unknown) => z.ZodType)): z.ZodType<T> =>
  z.unknown().superRefine((value, context) => {
    const { error } = (typeof schema === "function" ? schema(value) : schema).safeParse(value);
    for (const { code: _, ...issue } of error?.issues ?? [])
      context.addIssue({ code: "custom", message: issue.message, path: issue.path, input: undefined });
  }) as unknown as z.ZodType<T>;

/** Largest magnitude of a number: sums and squares over a run stay finite. */
const MOST_SIZE = 1e30;
export const isSmall = (value: number): boolean => Math.abs(value) <= MOST_SIZE;
export const number = z.number().min(-MOST_SIZE).max(MOST_SIZE);
/** Names with numbers: metrics. */
export const numbers = z
  .record(z.string().max(200), number)
  .refine((record) => Object.keys(record).length <= 1000, "more than 1,000 names");
export const text = z.string().max(16 * 1024 * 1024);

export const int32s = z.instanceof(Int32Array);
export const float32s = z.instanceof(Float32Array);

/** Whether all values of a list are valid; much faster than a schema for each. */
export function every(values: ArrayLike<number>, isValid: (value: number, index: number) => boolean): boolean {
  for (let i = 0; i < values.length; i++) if (!isValid(values[i]!, i)) return false;
  return true;
}

/** An image whose file has arrived and was checked (`ImageExchange`). */
export const image = z.custom<LoadedImage>(isImage, "expected an image");

const parts = z
  .array(
    z.discriminatedUnion("type", [
      z.looseObject({ type: z.literal("text"), text }),
      z.looseObject({ type: z.literal("image"), image }),
    ]),
  )
  .max(100_000);
/** Not a union, whose errors would not name the wrong part. */
const content = asItCame<ChatMessage["content"]>((value) => (Array.isArray(value) ? parts : text));

/** A message in the form of templates and records. */
export const messageSchema = z.looseObject({
  role: z.enum(["system", "user", "assistant", "tool"]),
  content,
  name: text.optional(),
  tool_calls: z
    .array(
      z.looseObject({
        id: text.optional(),
        type: z.literal("function").optional(),
        function: z.looseObject({ name: text, arguments: z.union([text, z.record(z.string(), z.unknown())]) }),
      }),
    )
    .max(10_000)
    .optional(),
  tool_call_id: text.optional(),
  reasoning_content: text.optional(),
});
export const messagesSchema = z.array(messageSchema).max(100_000);
