import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readPng } from "../testing/read-png.js";
import { encodePng } from "./encode-png.js";
import type { Picture } from "./image-encoder.js";
import { loadImage } from "./load-image.js";
import { cropPicture, scalePicture } from "./transform-picture.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

function makePicture(width: number, height: number, paint: (x: number, y: number) => number[]): Picture {
  const rgb = new Uint8Array(width * height * 3);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) rgb.set(paint(x, y), (y * width + x) * 3);
  return { width, height, rgb };
}

const anyPicture = fc
  .record({ width: fc.integer({ min: 1, max: 12 }), height: fc.integer({ min: 1, max: 12 }) })
  .chain(({ width, height }) =>
    fc
      .uint8Array({ minLength: width * height * 3, maxLength: width * height * 3 })
      .map((rgb) => ({ width, height, rgb })),
  );

describe("a PNG", () => {
  it("holds every pixel, under checksums that are right", async () => {
    await fc.assert(
      fc.asyncProperty(anyPicture, async (picture) => {
        const file = encodePng(picture);
        expect(readPng(file)).toEqual(picture);
        const { width, height } = picture;
        expect(await loadImage({ bytes: file })).toMatchObject({ mimeType: "image/png", width, height });
        const bytes = Buffer.from(file);
        for (let at = 8; at < bytes.length; ) {
          const length = bytes.readUInt32BE(at);
          const checked = bytes.subarray(at + 4, at + 8 + length);
          expect(bytes.readUInt32BE(at + 8 + length)).toBe(crc32(checked));
          at += length + 12;
        }
      }),
    );
  });

  it("has the same bytes everywhere, and few where colours repeat", () => {
    const file = encodePng(makePicture(64, 48, (x, y) => (x < 40 ? [200, 10, 30] : [x, y, x ^ y])));
    expect(createHash("sha256").update(file).digest("hex")).toMatchInlineSnapshot(
      `"528d2c09299ef1e732f915d2ae963f0a9871c9fa4a6ce93f28bda27b400d336d"`,
    );
    expect(file.length).toBeLessThan(0.4 * 64 * 48 * 3);
  });
});

describe("a picture", () => {
  const picture = makePicture(4, 3, (x, y) => [x, y, 10 * x + y]);

  it("is cropped to a box", () => {
    expect(cropPicture(picture, { left: 1, top: 1, right: 3, bottom: 3 })).toEqual(
      makePicture(2, 2, (x, y) => [x + 1, y + 1, 10 * (x + 1) + y + 1]),
    );
    expect(cropPicture(picture, { left: 0, top: 0, right: 4, bottom: 3 })).toEqual(picture);
  });

  it("takes averages over areas where it shrinks, also where pixels count in parts", () => {
    expect(scalePicture(picture, 2, 1)).toEqual(makePicture(2, 1, (x) => [x === 0 ? 1 : 3, 1, x === 0 ? 6 : 26]));
    const grey = (...values: number[]) => makePicture(values.length, 1, (x) => [values[x]!, values[x]!, values[x]!]);
    // Thirds: (0 + 90 / 2) / 1.5 and (90 / 2 + 210) / 1.5.
    expect(scalePicture(grey(0, 90, 210), 2, 1)).toEqual(grey(30, 170));
    expect(scalePicture(grey(0, 90, 210), 1, 1)).toEqual(grey(100));
  });

  it("is interpolated between the middles of pixels where it grows", () => {
    const grey = (...values: number[]) => makePicture(1, values.length, (_, y) => [values[y]!, values[y]!, values[y]!]);
    expect(scalePicture(grey(0, 100), 1, 4)).toEqual(grey(0, 25, 75, 100));
  });

  it("keeps a single colour, whatever its sizes", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 4, maxLength: 4 }), ([a, b, c, d]) => {
        const colour = [7, 128, 255];
        expect(
          scalePicture(
            makePicture(a!, b!, () => colour),
            c!,
            d!,
          ),
        ).toEqual(makePicture(c!, d!, () => colour));
      }),
    );
  });
});
