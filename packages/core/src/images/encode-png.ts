import { constants, deflateSync } from "node:zlib";
import { DataError } from "../errors/data-error.js";
import type { Picture } from "./image-encoder.js";

const signature = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
const bytesPerPixel = 3;

/**
 * Encodes a picture as a PNG file: 8 bits per channel, no transparency. The same picture gives the same bytes on every
 * machine, so that its file has the same hash. For this each row is written as differences to the pixel on the left,
 * and only runs are compressed (Z_RLE), because zlib's search for other repetitions depends on the CPU.
 * @throws DataError when the number of pixels differs from the size.
 */
export function encodePng({ width, height, rgb }: Picture): Uint8Array {
  if (!(width >= 1 && height >= 1 && rgb.length === width * height * bytesPerPixel)) {
    throw new DataError("has pixels that do not fit its size", {
      code: "data/bad-image",
      subject: "picture",
      expected: `${width} x ${height} pixels of three bytes`,
      received: `${rgb.length} bytes`,
    });
  }
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, width);
  view.setUint32(4, height);
  // Bits per channel, colour type RGB; compression, filter method and interlacing have one value each.
  header.set([8, 2, 0, 0, 0], 8);
  const pixels = deflateSync(filterRows(rgb, width * bytesPerPixel, height), { strategy: constants.Z_RLE });
  return Buffer.concat([
    signature,
    makeChunk("IHDR", header),
    makeChunk("IDAT", pixels),
    makeChunk("IEND", new Uint8Array(0)),
  ]);
}

/**
 * Each row after its filter type, 1: a byte is the difference from that of the previous pixel. PNG specification, 9.2.
 */
function filterRows(rgb: Uint8Array, rowBytes: number, height: number): Uint8Array {
  const rows = new Uint8Array((rowBytes + 1) * height);
  for (let y = 0; y < height; y++) {
    const from = y * rowBytes;
    const to = y * (rowBytes + 1) + 1;
    rows[to - 1] = 1;
    for (let i = 0; i < rowBytes; i++)
      rows[to + i] = rgb[from + i]! - (i < bytesPerPixel ? 0 : rgb[from + i - bytesPerPixel]!);
  }
  return rows;
}

function makeChunk(type: string, data: Uint8Array): Uint8Array {
  const chunk = Buffer.alloc(data.length + 12);
  chunk.writeUInt32BE(data.length, 0);
  chunk.write(type, 4, "latin1");
  chunk.set(data, 8);
  chunk.writeUInt32BE(computeCrc(chunk.subarray(4, data.length + 8)), data.length + 8);
  return chunk;
}

/** CRC-32 as in PNG specification, annex D. */
const crcTable = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});

function computeCrc(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = crcTable[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
