import { open, rename, rm } from "node:fs/promises";
import { EngineError, suggestWriteRemedy } from "@cria/core";
import type { GgufHeader } from "./read-gguf.js";
import { countBytes, type TensorType } from "./tensor-types.js";

export interface PlannedTensor {
  name: string;
  type: TensorType;
  /** Fastest axis first. */
  shape: readonly number[];
  /** The data, made when its turn comes: one tensor is in memory at a time. */
  makeBytes: () => Promise<Buffer>;
}

/**
 * Writes a GGUF with the metadata of another file, entry by entry as they stand there, and new tensors: temporary name,
 * sync, rename.
 * @throws EngineError when the file cannot be written; nothing is left behind then.
 */
export async function writeGgufFile(
  path: string,
  { metadata, alignment }: GgufHeader,
  tensors: readonly PlannedTensor[],
): Promise<void> {
  const entries = [...metadata.values()].map(({ raw }) => raw);
  let end = 0;
  const infos = tensors.map(({ name, type, shape }) => {
    const offset = Math.ceil(end / alignment) * alignment;
    end = offset + countBytes(type, shape);
    const axes = Buffer.concat(shape.map(encodeU64));
    return {
      offset,
      bytes: Buffer.concat([encodeString(name), encodeU32(shape.length), axes, encodeU32(type.id), encodeU64(offset)]),
    };
  });
  const header = Buffer.concat([
    Buffer.from("GGUF"),
    encodeU32(3),
    encodeU64(tensors.length),
    encodeU64(entries.length),
    ...entries,
    ...infos.map((info) => info.bytes),
  ]);
  const start = Math.ceil(header.length / alignment) * alignment;
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    const file = await open(temporary, "w");
    try {
      await file.writeFile(header);
      let at = header.length;
      for (const [i, tensor] of tensors.entries()) {
        const begin = start + infos[i]!.offset;
        await file.writeFile(Buffer.alloc(begin - at));
        const data = await tensor.makeBytes();
        await file.writeFile(data);
        at = begin + data.length;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    if (error instanceof EngineError) throw error;
    throw new EngineError("cannot be written", {
      code: "engine/write-failed",
      subject: path,
      expected: "a writable folder with room for the file",
      received: (error as Error).message,
      remedy: `${suggestWriteRemedy(error, "choose another path")}; nothing was changed`,
      cause: error,
    });
  }
}

function encodeString(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([encodeU64(bytes.length), bytes]);
}

function encodeU32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function encodeU64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
