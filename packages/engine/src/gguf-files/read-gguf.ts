import { type FileHandle, open } from "node:fs/promises";
import { EngineError } from "@cria/core";
import { countBytes, findTypeById, type TensorType } from "./tensor-types.js";

export interface GgufEntry {
  /** Scalars and strings have their value; arrays only their length. */
  value: number | bigint | boolean | string | { arrayLength: number };
  /** The bytes of the whole entry in the file, key included. */
  raw: Buffer;
}

export interface GgufTensorInfo {
  name: string;
  type: TensorType;
  /** Fastest axis first. */
  shape: number[];
  /** Bytes from the file's start. */
  offset: number;
  bytes: number;
}

/** Everything before the tensors' data. */
export interface GgufHeader {
  path: string;
  metadata: Map<string, GgufEntry>;
  tensors: GgufTensorInfo[];
  /** Alignment of the tensors' data, in bytes. */
  alignment: number;
}

/** Reads names, types and offsets of everything in a GGUF file, without its data. @throws EngineError */
export async function readGguf(path: string): Promise<GgufHeader> {
  const file = await open(path).catch((cause: Error) => {
    throw makeUnreadable(path, cause.message);
  });
  try {
    const { size } = await file.stat();
    // Headers are a few MB at most; if one is longer, the next attempt reads more.
    for (let length = 1 << 20; ; length *= 4) {
      const bytes = await readExactly(file, Math.min(length, size));
      try {
        return parseHeader(path, bytes, size);
      } catch (error) {
        if (!(error instanceof RangeError) || length >= size) throw makeUnreadable(path, (error as Error).message);
      }
    }
  } finally {
    await file.close();
  }
}

/** The values of an entry that is an array, which its `value` leaves out. Empty for any other entry, and for none. */
export function readArray(entry: GgufEntry | undefined): GgufEntry["value"][] {
  if (typeof entry?.value !== "object") return [];
  const reader = new Reader(entry.raw);
  reader.string(); // the key
  reader.u32(); // the type: an array
  const type = reader.u32();
  return Array.from({ length: reader.u64() }, () => reader.value(type));
}

/** A tensor's data as stored in the file. @throws RangeError when the file ends earlier. */
export async function readTensorBytes(file: FileHandle, tensor: GgufTensorInfo): Promise<Buffer> {
  return readExactly(file, tensor.bytes, tensor.offset);
}

async function readExactly(file: FileHandle, length: number, position = 0): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done);
    if (bytesRead === 0) throw new RangeError(`the file ends at byte ${position + done}`);
    done += bytesRead;
  }
  return bytes;
}

function parseHeader(path: string, bytes: Buffer, size: number): GgufHeader {
  const reader = new Reader(bytes);
  if (reader.take(4).toString("latin1") !== "GGUF") throw new Error('does not start with "GGUF"');
  const version = reader.u32();
  if (version !== 2 && version !== 3) throw new Error(`GGUF version ${version}, only 2 and 3 can be read`);
  const tensorCount = reader.u64();
  const entryCount = reader.u64();
  const metadata = new Map<string, GgufEntry>();
  for (let i = 0; i < entryCount; i++) {
    const begin = reader.at;
    const key = reader.string();
    const value = reader.value(reader.u32());
    metadata.set(key, { value, raw: bytes.subarray(begin, reader.at) });
  }
  const tensors: GgufTensorInfo[] = [];
  for (let i = 0; i < tensorCount; i++) {
    const name = reader.string();
    const shape = Array.from({ length: reader.u32() }, () => reader.u64());
    if (shape.some((n) => n < 1)) throw new Error(`tensor ${name} has the shape [${shape.join(", ")}]`);
    const id = reader.u32();
    const type = findTypeById(id);
    if (!type) throw new Error(`tensor ${name} has the unknown type ${id}`);
    tensors.push({ name, type, shape, offset: reader.u64(), bytes: countBytes(type, shape) });
  }
  const alignment = Number(metadata.get("general.alignment")?.value ?? 32);
  const start = Math.ceil(reader.at / alignment) * alignment;
  for (const tensor of tensors) {
    tensor.offset += start;
    if (tensor.offset + tensor.bytes > size)
      throw new Error(`tensor ${tensor.name} ends at byte ${tensor.offset + tensor.bytes} of ${size}`);
  }
  return { path, metadata, tensors, alignment };
}

/** Reads little-endian values one after another. A RangeError means that there are too few bytes. */
class Reader {
  at = 0;
  constructor(private readonly bytes: Buffer) {}

  take(length: number): Buffer {
    if (this.at + length > this.bytes.length) throw new RangeError(`the header ends at byte ${this.bytes.length}`);
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  u32(): number {
    return this.take(4).readUInt32LE();
  }

  u64(): number {
    return Number(this.take(8).readBigUInt64LE());
  }

  string(): string {
    return this.take(this.u64()).toString();
  }

  value(type: number): GgufEntry["value"] {
    switch (type) {
      case 0:
        return this.take(1).readUInt8();
      case 1:
        return this.take(1).readInt8();
      case 2:
        return this.take(2).readUInt16LE();
      case 3:
        return this.take(2).readInt16LE();
      case 4:
        return this.u32();
      case 5:
        return this.take(4).readInt32LE();
      case 6:
        return this.take(4).readFloatLE();
      case 7:
        return this.take(1).readUInt8() !== 0;
      case 8:
        return this.string();
      case 9: {
        const of = this.u32();
        const arrayLength = this.u64();
        for (let i = 0; i < arrayLength; i++) this.value(of);
        return { arrayLength };
      }
      case 10:
        return this.take(8).readBigUInt64LE();
      case 11:
        return this.take(8).readBigInt64LE();
      case 12:
        return this.take(8).readDoubleLE();
      default:
        throw new Error(`a value has the unknown type ${type}`);
    }
  }
}

function makeUnreadable(path: string, received: string): EngineError {
  return new EngineError("cannot be read", {
    code: "engine/not-gguf",
    subject: path,
    expected: "a whole GGUF file",
    received,
    remedy: "check the path, or fetch the file again",
  });
}
