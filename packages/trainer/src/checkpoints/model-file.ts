import { createHash } from "node:crypto";
import { open } from "node:fs/promises";

/** Identifies a model's file: its size, and a hash over its beginning and samples of the rest. */
export interface ModelFile {
  bytes: number;
  /** SHA-256, as hexadecimal. */
  hash: string;
}

/** The beginning, with names, shapes and most of the vocabulary. */
const HEAD_BYTES = 1 << 20;
/** Number of samples of the weights, evenly spread: reading all of a large file would take longer than loading it. */
const PLACES = 64;
const PLACE_BYTES = 1 << 14;

/** @throws Error of the file system when it cannot be read. */
export async function describeModelFile(path: string): Promise<ModelFile> {
  const file = await open(path);
  try {
    const { size: bytes } = await file.stat();
    const hash = createHash("sha256");
    const add = async (position: number, length: number) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
      hash.update(buffer.subarray(0, bytesRead));
    };
    await add(0, HEAD_BYTES);
    for (let i = 1; i <= PLACES; i++)
      await add(Math.floor((i / PLACES) * Math.max(0, bytes - PLACE_BYTES)), PLACE_BYTES);
    return { bytes, hash: hash.digest("hex") };
  } finally {
    await file.close();
  }
}
