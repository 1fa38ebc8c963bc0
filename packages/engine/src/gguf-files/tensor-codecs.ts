/** Converts values of the simple tensor types to floats and back, with the same bits as ggml's reference functions. */

const floats = new Float32Array(1);
const bits = new Uint32Array(floats.buffer);

/** IEEE half, rounded to nearest, ties to even. */
export function encodeHalf(value: number): number {
  floats[0] = value;
  const x = bits[0]!;
  const sign = (x >>> 16) & 0x8000;
  const exponent = (x >>> 23) & 0xff;
  const fraction = x & 0x7fffff;
  if (exponent === 0xff) return sign | 0x7c00 | (fraction ? 0x200 : 0);
  const shifted = exponent - 112;
  if (shifted >= 31) return sign | 0x7c00;
  // Subnormal halves drop further bits of the full significand.
  const drop = shifted > 0 ? 13 : 14 - shifted;
  if (drop > 24) return sign;
  const significand = shifted > 0 ? fraction : fraction | 0x800000;
  const half = (shifted > 0 ? shifted << 10 : 0) + (significand >>> drop);
  const rest = significand & ((1 << drop) - 1);
  const middle = 1 << (drop - 1);
  return sign | (half + (rest > middle || (rest === middle && half & 1) ? 1 : 0));
}

export function decodeHalf(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >>> 10) & 31;
  const fraction = half & 0x3ff;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

function encodeBfloat(value: number): number {
  floats[0] = value;
  const x = bits[0]!;
  if ((x & 0x7fffffff) > 0x7f800000) return (x >>> 16) | 64;
  return (x + 0x7fff + ((x >>> 16) & 1)) >>> 16;
}

function decodeBfloat(half: number): number {
  bits[0] = half << 16;
  return floats[0]!;
}

interface Codec {
  decode(bytes: Buffer, values: Float32Array): void;
  encode(values: Float32Array, bytes: Buffer): void;
}

function makeHalfCodec(decode: (half: number) => number, encode: (value: number) => number): Codec {
  return {
    decode: (bytes, values) => {
      for (let i = 0; i < values.length; i++) values[i] = decode(bytes.readUInt16LE(2 * i));
    },
    encode: (values, bytes) => {
      for (let i = 0; i < values.length; i++) bytes.writeUInt16LE(encode(values[i]!), 2 * i);
    },
  };
}

/** Blocks of 32: a half `d`, then 32 signed bytes; a value is d times its byte. */
const q8: Codec = {
  decode: (bytes, values) => {
    for (let block = 0; 32 * block < values.length; block++) {
      const d = decodeHalf(bytes.readUInt16LE(34 * block));
      for (let i = 0; i < 32; i++) values[32 * block + i] = d * bytes.readInt8(34 * block + 2 + i);
    }
  },
  encode: (values, bytes) => {
    for (let block = 0; 32 * block < values.length; block++) {
      let most = 0;
      for (let i = 0; i < 32; i++) most = Math.max(most, Math.abs(values[32 * block + i]!));
      const d = Math.fround(most / 127);
      const inverse = d === 0 ? 0 : Math.fround(1 / d);
      bytes.writeUInt16LE(encodeHalf(d), 34 * block);
      for (let i = 0; i < 32; i++) {
        const x = Math.fround(values[32 * block + i]! * inverse);
        // As C's roundf: rounds halves away from zero.
        bytes.writeInt8(Math.sign(x) * Math.floor(Math.abs(x) + 0.5), 34 * block + 2 + i);
      }
    }
  },
};

const codecs: Record<string, Codec> = {
  f32: {
    decode: (bytes, values) => {
      for (let i = 0; i < values.length; i++) values[i] = bytes.readFloatLE(4 * i);
    },
    encode: (values, bytes) => {
      for (let i = 0; i < values.length; i++) bytes.writeFloatLE(values[i]!, 4 * i);
    },
  },
  f16: makeHalfCodec(decodeHalf, encodeHalf),
  bf16: makeHalfCodec(decodeBfloat, encodeBfloat),
  q8_0: q8,
};

/** The codec of a type, or undefined for types that only ggml itself can read. */
export function findCodec(type: string): Codec | undefined {
  return codecs[type];
}
