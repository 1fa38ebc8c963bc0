import { ClusterError, type LoadedImage } from "@cria/core";
import { z } from "zod";
import type { JobBus } from "../bus/job-bus.js";
import { cleanText } from "../bus/job-record.js";
import type { ImageExchange } from "../images/image-exchange.js";
import { pack, unpack } from "./pack.js";

/** Most bytes of a value within a message; larger ones go into a separate blob, both results and a job's work. */
const MOST_INLINE = 128 * 1024;
export const MOST_WORK_INLINE = 24 * 1024;

export const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** A packed value: within a message, or the SHA-256 of the blob that holds it. */
export const packedSchema = z.union([
  z.strictObject({ bytes: z.base64() }),
  z.strictObject({ blob: sha256, size: z.int().nonnegative() }),
]);
export type Packed = z.infer<typeof packedSchema>;

type HasBlobs = Pick<JobBus, "blobs">;

/**
 * Packs a value, and stores it in a blob if it is large. Its images are stored before, each in its blob.
 * @param images absent: images cannot be packed.
 * @param most bytes that go into the message.
 * @throws TypeError for a value that cannot be packed; ClusterError.
 */
export async function send(
  { blobs }: HasBlobs,
  value: unknown,
  images?: ImageExchange,
  most = MOST_INLINE,
): Promise<Packed> {
  const shown = new Map<string, LoadedImage>();
  const bytes = pack(value, images && ((image) => shown.set(image.hash, image)));
  await Promise.all([...shown.values()].map((image) => images!.put(image)));
  if (bytes.byteLength <= most) return { bytes: Buffer.from(bytes).toString("base64") };
  return { blob: await blobs.put(bytes), size: bytes.byteLength };
}

/** Bytes that a value takes in transfer. */
export const sizeOf = (packed: Packed): number => ("blob" in packed ? packed.size : (packed.bytes.length * 3) / 4);

/** Most images of one value. */
const MOST_IMAGES = 10_000;
/** Images fetched at once. */
const FETCH_WIDTH = 16;

/**
 * Another machine's packed value, with its images in memory.
 * @param subject name of the value in errors.
 * @param images absent: images are refused.
 * @throws ClusterError "cluster/invalid-message" for invalid bytes, a value that the schema refuses, or refused images;
 * errors of `blobs.get`.
 */
export async function receive<T>(
  { blobs }: HasBlobs,
  packed: Packed,
  schema: z.ZodType<T>,
  subject: string,
  images?: ImageExchange,
): Promise<T> {
  const bytes = "blob" in packed ? await blobs.get(packed.blob) : Buffer.from(packed.bytes, "base64");
  const refuse = (received: string, cause?: unknown) =>
    new ClusterError("is invalid", { code: "cluster/invalid-message", subject, received, cause });
  const read = (image: ((sha: string) => unknown) | undefined) => {
    try {
      return unpack(bytes, image);
    } catch (cause) {
      throw refuse(cleanText(cause instanceof Error ? cause.message : String(cause)), cause);
    }
  };
  const named = new Set<string>();
  let value = read(images && ((sha) => void named.add(sha)));
  if (named.size > MOST_IMAGES) throw refuse(`${named.size} images, and at most ${MOST_IMAGES} may be`);
  if (named.size > 0) {
    const found = await getAll(images!, [...named]);
    value = read((sha) => found.get(sha));
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw refuse(cleanText(z.prettifyError(parsed.error)));
}

async function getAll(images: ImageExchange, wanted: readonly string[]): Promise<Map<string, LoadedImage>> {
  const found = new Map<string, LoadedImage>();
  for (let at = 0; at < wanted.length; at += FETCH_WIDTH) {
    const some = wanted.slice(at, at + FETCH_WIDTH);
    for (const image of await Promise.all(some.map((sha) => images.get(sha)))) found.set(image.hash, image);
  }
  return found;
}
