import { open, rename, rm } from "node:fs/promises";
import { EngineError } from "@cria/core";
import { suggestWriteRemedy } from "@cria/core/internal";
import type { GgufTensor, GgufValue } from "../native-types.js";
import { encodeValues } from "./encode-values.js";
import type { GgufEntry } from "./read-gguf.js";
import { countBytes, findType, type TensorType } from "./tensor-types.js";

/** A tensor that creates its data when it is written, so that only one is in memory at a time. */
export interface LazyGgufTensor {
  name: string;
  /** ggml's name of its type, such as "q4_K". */
  type: string;
  /** Fastest axis first. */
  shape: readonly number[];
  /** Creates the data as stored in the file. */
  makeBytes: () => Promise<Uint8Array>;
}

/** Content of a GGUF file. */
export interface GgufContent {
  /** Values, or entries of another file (`readGguf`), which are copied unchanged. */
  metadata: Readonly<Record<string, GgufValue | GgufEntry>>;
  /** Floats are quantized to their tensor's type. */
  tensors: readonly (GgufTensor | LazyGgufTensor)[];
}

/**
 * Writes a GGUF file: temporary name, sync, rename.
 * @throws EngineError when a name, shape, type or value is wrong, or the file cannot be written; no partial file
 * remains.
 */
export async function writeGguf(path: string, { metadata, tensors }: GgufContent): Promise<void> {
  const entries = Object.entries(metadata).map(([key, value]) => encodeEntry(key, value));
  const alignment = readAlignment(metadata["general.alignment"]);
  const types = checkTensors(tensors);
  let end = 0;
  const infos = tensors.map(({ name, shape }, i) => {
    const offset = Math.ceil(end / alignment) * alignment;
    end = offset + countBytes(types[i]!, shape);
    const axes = Buffer.concat(shape.map(encodeU64));
    return {
      offset,
      bytes: Buffer.concat([
        encodeString(name),
        encodeU32(shape.length),
        axes,
        encodeU32(types[i]!.id),
        encodeU64(offset),
      ]),
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
        const data =
          "data" in tensor ? await encodeValues(tensor, `${path}.${process.pid}.values`) : await tensor.makeBytes();
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

/** As in ggml, tensors begin at multiples of the alignment. */
function readAlignment(given: GgufValue | GgufEntry | undefined): number {
  const alignment = given?.value ?? 32;
  if (typeof alignment === "number" && alignment >= 8 && alignment % 8 === 0) return alignment;
  throw fail('metadata["general.alignment"]', "is not an alignment", "a multiple of 8", String(alignment));
}

/** @returns the types. */
function checkTensors(tensors: GgufContent["tensors"]): TensorType[] {
  const names = new Set<string>();
  return tensors.map((tensor, i) => {
    const { name, shape } = tensor;
    const length = Buffer.byteLength(name);
    if (length < 1 || length > 63 || names.has(name))
      throw fail(`tensors[${i}].name`, "is not a valid name", "a unique name of 1 to 63 bytes", JSON.stringify(name));
    names.add(name);
    const type = findType(tensor.type);
    if (!type) throw fail(name, "has a type that ggml does not know", "f32, f16, q8_0, q4_K and so on", tensor.type);
    const wrong = shape.find((n) => !Number.isInteger(n) || n < 1 || n > 2 ** 31);
    if (shape.length < 1 || shape.length > 4 || wrong !== undefined)
      throw fail(name, "has a wrong shape", "1 to 4 dimensions of 1 to 2^31", `[${shape.join(", ")}]`);
    const count = shape.reduce((product, n) => product * n, 1);
    if (count > Number.MAX_SAFE_INTEGER)
      throw fail(name, "has a shape with too many elements", "at most 2^53 - 1", `[${shape.join(", ")}]`);
    if (shape[0]! % type.blockSize !== 0)
      throw fail(name, "has rows that do not divide into blocks", `a multiple of ${type.blockSize}`, String(shape[0]));
    if ("data" in tensor && tensor.data.length !== count)
      throw fail(name, "has a shape that does not fit its data", `${count} values`, String(tensor.data.length));
    return type;
  });
}

/** Types of values by their number in the file. */
const VALUE_TYPES = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const;

function encodeEntry(key: string, entry: GgufValue | GgufEntry): Buffer {
  if ("raw" in entry) return entry.raw;
  const subject = `metadata[${JSON.stringify(key)}]`;
  const { type, value } = entry;
  const head = [encodeString(key), encodeType(subject, type)];
  if (type !== "array") return Buffer.concat([...head, encodeValue(subject, type, value)]);
  const { of } = entry;
  const items = (value as (string | number)[]).map((item) => encodeValue(subject, of, item));
  return Buffer.concat([...head, encodeType(subject, of), encodeU64(items.length), ...items]);
}

function encodeType(subject: string, type: keyof typeof VALUE_TYPES): Buffer {
  const id = VALUE_TYPES[type];
  if (id === undefined) throw fail(subject, "has an unknown type", Object.keys(VALUE_TYPES).join(", "), String(type));
  return encodeU32(id);
}

function encodeValue(subject: string, type: keyof typeof VALUE_TYPES, value: unknown): Buffer {
  const bytes = Buffer.alloc(4);
  if (type === "string" && typeof value === "string") return encodeString(value);
  if (type === "bool" && typeof value === "boolean") return Buffer.of(Number(value));
  const ranges: Partial<Record<typeof type, readonly [number, number]>> = {
    uint32: [0, 2 ** 32 - 1],
    int32: [-(2 ** 31), 2 ** 31 - 1],
    float32: [-3.4028234663852886e38, 3.4028234663852886e38],
  };
  const [low, high] = ranges[type] ?? [Number.NaN, Number.NaN];
  if (typeof value !== "number" || !(value >= low && value <= high) || (type !== "float32" && !Number.isInteger(value)))
    throw fail(subject, "has a wrong value", `a value of type ${type}`, JSON.stringify(value) ?? "nothing");
  if (type === "float32") bytes.writeFloatLE(value);
  else if (type === "int32") bytes.writeInt32LE(value);
  else bytes.writeUInt32LE(value);
  return bytes;
}

function fail(subject: string, summary: string, expected: string, received: string): EngineError {
  return new EngineError(summary, { code: "engine/bad-option", subject, expected, received });
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
