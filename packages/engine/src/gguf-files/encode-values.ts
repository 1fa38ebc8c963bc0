import { open, rm } from "node:fs/promises";
import { callNative, getAddon } from "../native.js";
import type { GgufTensor } from "../native-types.js";
import { readGguf, readTensorBytes } from "./read-gguf.js";
import { findCodec } from "./tensor-codecs.js";
import { countBytes, getType } from "./tensor-types.js";

/**
 * Encodes a tensor's floats in its type, with the same bits as ggml. Types that only ggml can write go through a file
 * that the addon writes.
 * @param temporary path for that file, which is removed again.
 * @throws EngineError for a type that ggml cannot write from the values only.
 */
export async function encodeValues(tensor: GgufTensor, temporary: string): Promise<Uint8Array> {
  const { type, shape, data } = tensor;
  if (type === "f32") return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const codec = findCodec(type);
  if (codec) {
    const bytes = Buffer.alloc(countBytes(getType(type), shape));
    codec.encode(data, bytes);
    return bytes;
  }
  try {
    await callNative(() => getAddon().writeGguf(temporary, { metadata: {}, tensors: [tensor] }));
    const { tensors } = await readGguf(temporary);
    const file = await open(temporary);
    try {
      return await readTensorBytes(file, tensors[0]!);
    } finally {
      await file.close();
    }
  } finally {
    await rm(temporary, { force: true });
  }
}
