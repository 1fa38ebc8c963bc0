import { inflateSync } from "node:zlib";
import type { Picture } from "../images/image-encoder.js";

/** The pixels of a PNG written by `encodePng`; does not support other files. */
export function readPng(file: Uint8Array): Picture {
  const bytes = Buffer.from(file);
  const width = bytes.readUInt32BE(16);
  const height = bytes.readUInt32BE(20);
  const rows = inflateSync(bytes.subarray(41, 41 + bytes.readUInt32BE(33)));
  const rgb = new Uint8Array(width * height * 3);
  for (let y = 0; y < height; y++) {
    const row = rows.subarray(y * (width * 3 + 1), (y + 1) * (width * 3 + 1));
    if (row[0] !== 1) throw new Error(`row ${y} has filter ${row[0]}, not 1`);
    for (let i = 0; i < width * 3; i++)
      rgb[y * width * 3 + i] = row[i + 1]! + (i < 3 ? 0 : rgb[y * width * 3 + i - 3]!);
  }
  return { width, height, rgb };
}
