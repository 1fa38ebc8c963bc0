import { type FileHandle, open } from "node:fs/promises";
import { ConfigError } from "@cria/core";

export interface SafetensorsTensor {
  shape: number[];
  data: Float32Array;
}

/** Longest header that the format allows. */
const LONGEST_HEADER = 100_000_000;

/**
 * Reads a single tensor of a safetensors file.
 * @see https://github.com/huggingface/safetensors#format
 * @throws ConfigError when the file or the tensor is missing, or its type is none of F32, F16 and BF16.
 */
export async function readSafetensorsTensor(path: string, name: string): Promise<SafetensorsTensor> {
  const fail = (received: string, cause?: unknown) =>
    new ConfigError("cannot be read", {
      code: "config/bad-safetensors",
      subject: path,
      expected: `a safetensors file with ${name} as F32, F16 or BF16`,
      received,
      cause,
    });
  const file = await open(path).catch((cause: Error) => {
    throw fail(cause.message, cause);
  });
  try {
    const length = Number((await readExactly(file, 8, 0)).readBigUInt64LE());
    if (length > LONGEST_HEADER) throw new RangeError(`a header of ${length} bytes`);
    const header = JSON.parse((await readExactly(file, length, 8)).toString("utf8")) as Record<
      string,
      { dtype: string; shape: number[]; data_offsets: [number, number] } | undefined
    >;
    const entry = header[name];
    if (!entry) throw new RangeError(`no such tensor; it has ${Object.keys(header).slice(0, 8).join(", ")}`);
    const [begin, end] = entry.data_offsets;
    const bytes = await readExactly(file, end - begin, 8 + length + begin);
    const decode = decoders[entry.dtype];
    if (!decode) throw new RangeError(`the type ${entry.dtype}`);
    return { shape: entry.shape, data: decode(bytes) };
  } catch (cause) {
    throw fail((cause as Error).message, cause);
  } finally {
    await file.close();
  }
}

async function readExactly(file: FileHandle, length: number, position: number): Promise<Buffer> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position);
  if (bytesRead === length) return buffer;
  throw new RangeError(`the file ends at byte ${position + bytesRead}`);
}

const decoders: Record<string, ((bytes: Buffer) => Float32Array) | undefined> = {
  F32: (bytes) => Float32Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i)),
  F16: (bytes) => Float32Array.from({ length: bytes.length / 2 }, (_, i) => decodeHalf(bytes.readUInt16LE(2 * i))),
  // The upper half of an F32.
  BF16: (bytes) => {
    const words = Uint32Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readUInt16LE(2 * i) << 16);
    return new Float32Array(words.buffer);
  },
};

/** IEEE 754 binary16. */
function decodeHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
