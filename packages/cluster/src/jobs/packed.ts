import { ClusterError } from "@cria/core";
import { z } from "zod";
import type { JobBus } from "../bus/job-bus.js";
import { cleanText } from "../bus/job-record.js";
import { pack, unpack } from "./pack.js";

/** What is larger goes into a blob of its own, in bytes. */
const MOST_INLINE = 128 * 1024;

export const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** A packed value: within a message, or the SHA-256 of the blob that holds it. */
export const packedSchema = z.union([
  z.strictObject({ bytes: z.base64() }),
  z.strictObject({ blob: sha256, size: z.int().nonnegative() }),
]);
export type Packed = z.infer<typeof packedSchema>;

type HasBlobs = Pick<JobBus, "blobs">;

/** Packs a value, and stores it where it is large. @throws TypeError for what cannot be packed; ClusterError. */
export async function send({ blobs }: HasBlobs, value: unknown): Promise<Packed> {
  const bytes = pack(value);
  if (bytes.byteLength <= MOST_INLINE) return { bytes: Buffer.from(bytes).toString("base64") };
  return { blob: await blobs.put(bytes), size: bytes.byteLength };
}

/** Bytes that travel for a value. */
export const sizeOf = (packed: Packed): number => ("blob" in packed ? packed.size : (packed.bytes.length * 3) / 4);

/**
 * The value that another machine packed.
 * @param subject what it is, for errors.
 * @throws ClusterError "cluster/invalid-message" when it is no such value or not of the schema's kind; those of `blobs.get`.
 */
export async function receive<T>(
  { blobs }: HasBlobs,
  packed: Packed,
  schema: z.ZodType<T>,
  subject: string,
): Promise<T> {
  const bytes = "blob" in packed ? await blobs.get(packed.blob) : Buffer.from(packed.bytes, "base64");
  const refuse = (received: string, cause?: unknown) =>
    new ClusterError("is not what it must be", { code: "cluster/invalid-message", subject, received, cause });
  let value: unknown;
  try {
    value = unpack(bytes);
  } catch (cause) {
    throw refuse(cleanText(cause instanceof Error ? cause.message : String(cause)), cause);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw refuse(cleanText(z.prettifyError(parsed.error)));
}
