import { crc32, inflateSync } from "node:zlib";
import { imageSize } from "image-size";
import { describe, expect, it } from "vitest";
import { encodePng } from "./encode-png.js";

// packages/engine/src/images/pictures.test.ts checks that a decoder returns the same pixels.
describe("encodePng", () => {
  const picture = { width: 3, height: 2, rgb: Uint8Array.from({ length: 18 }, (_, i) => (i * 91) % 256) };

  it("writes chunks with their lengths and sums, and a header that says the size", () => {
    const file = Buffer.from(encodePng(picture));
    expect(imageSize(file)).toMatchObject({ width: 3, height: 2, type: "png" });
    const types: string[] = [];
    for (let at = 8; at < file.length; ) {
      const length = file.readUInt32BE(at);
      const body = file.subarray(at + 4, at + 8 + length);
      types.push(body.toString("latin1", 0, 4));
      expect(file.readUInt32BE(at + 8 + length)).toBe(crc32(body));
      at += 12 + length;
    }
    expect(types).toEqual(["IHDR", "IDAT", "IEND"]);
  });

  it("compresses a row for each line, behind its filter", () => {
    const file = Buffer.from(encodePng(picture));
    const at = file.indexOf("IDAT");
    const rows = inflateSync(file.subarray(at + 4, at + 4 + file.readUInt32BE(at - 4)));
    expect(rows.length).toBe(2 * 10);
    expect([rows[0], rows[10]]).toEqual([1, 1]);
    // The first pixel has no left neighbour.
    expect([...rows.subarray(1, 4)]).toEqual([...picture.rgb.subarray(0, 3)]);
  });

  it("refuses pixels that do not fit the size", () => {
    expect(() => encodePng({ ...picture, width: 4 })).toThrow(
      expect.objectContaining({
        code: "data/bad-image",
        expected: "4 x 2 pixels of three bytes",
        received: "18 bytes",
      }),
    );
    expect(() => encodePng({ width: 0, height: 0, rgb: new Uint8Array(0) })).toThrow(
      expect.objectContaining({ code: "data/bad-image", expected: "0 x 0 pixels of three bytes" }),
    );
  });
});
