import type { LoadedImage } from "@cria/core";
import { isImage } from "@cria/episodes/internal";
import { decode, ExtensionCodec, encode } from "@msgpack/msgpack";

/** Callbacks for the images of a value. */
interface ImageHandlers {
  /** Called with each packed image. */
  pack?: (image: LoadedImage) => void;
  /** Returns the stand-in for the image with this SHA-256. */
  unpack?: (sha256: string) => unknown;
}

/** Jobs carry MessagePack, with typed arrays as extension types: all machines are little-endian. */
const codec = new ExtensionCodec<ImageHandlers | undefined>();

type TypedArray = Int8Array | Uint16Array | Int32Array | Uint32Array | Float32Array | Float64Array;
// Types and their positions never change, since others may run another version.
const arrays = [Int8Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array] as const;
for (const [type, TypedArrayOf] of arrays.entries()) {
  codec.register({
    type,
    encode: (value) =>
      value instanceof TypedArrayOf ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : null,
    decode: (bytes): TypedArray => {
      if (bytes.byteLength % TypedArrayOf.BYTES_PER_ELEMENT !== 0) throw new RangeError("an incomplete number");
      // A copy, since the bytes may be unaligned in the message. Not by slice, which gives a view of a Buffer.
      return new TypedArrayOf(Uint8Array.from(bytes).buffer);
    },
  });
}
const BIG_INTEGER = 16;
codec.register({
  type: BIG_INTEGER,
  encode: (value) => (typeof value === "bigint" ? Buffer.from(value.toString()) : null),
  decode: (bytes) => BigInt(Buffer.from(bytes).toString()),
});
const IMAGE = 17;
codec.register({
  type: IMAGE,
  encode: (value, images) => {
    if (!isImage(value)) return null;
    if (!images?.pack) throw new TypeError("an image cannot be sent here");
    images.pack(value);
    return Buffer.from(value.hash, "hex");
  },
  decode: (bytes, _, images) => {
    if (bytes.length !== 32) throw new RangeError("an incomplete image");
    if (!images?.unpack) throw new TypeError("an image where none is allowed");
    return images.unpack(Buffer.from(bytes).toString("hex"));
  },
});

/** Deepest nesting of lists and objects. */
const MOST_DEPTH = 200;

/**
 * Packs a value of JSON's kinds, typed arrays, `NaN`, infinities and big integers. Keys keep their order, because
 * templates print them in it: values built alike have equal bytes. Undefined properties are left out. An image is
 * represented by its SHA-256.
 * @param onImage is called with each image; absent: images are refused.
 * @throws TypeError for functions, symbols, instances of classes, and nesting that is too deep.
 */
export function pack(value: unknown, onImage?: (image: LoadedImage) => void): Uint8Array {
  checkPlain(value, 0);
  const context = { pack: onImage };
  return encode(value, { extensionCodec: codec, context, ignoreUndefined: true, maxDepth: MOST_DEPTH });
}

/**
 * Unpacks another side's bytes.
 * @param image returns the stand-in for an image, by its SHA-256; absent: images are refused.
 * @throws Error for bytes that `pack` does not produce; nothing is executed.
 */
export function unpack(bytes: Uint8Array, image?: (sha256: string) => unknown): unknown {
  return decode(bytes, { extensionCodec: codec, context: { unpack: image } });
}

/** MessagePack would write an instance as if it were plain. */
function checkPlain(value: unknown, depth: number): void {
  if (depth > MOST_DEPTH) throw new TypeError(`a value deeper than ${MOST_DEPTH} cannot be sent`);
  if (typeof value === "function" || typeof value === "symbol") throw new TypeError(`a ${typeof value} cannot be sent`);
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value) || isImage(value)) return;
  if (Array.isArray(value)) {
    for (const each of value) checkPlain(each, depth + 1);
    return;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null)
    throw new TypeError(`an instance of ${prototype.constructor?.name ?? "a class"} cannot be sent`);
  for (const each of Object.values(value)) checkPlain(each, depth + 1);
}
