import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { fakeImageFile } from "../testing/fake-image-file.js";
import { loadImage, measureImage, readOrientation } from "./load-image.js";

const folder = mkdtempSync(join(tmpdir(), "cria-images-"));
afterAll(() => rmSync(folder, { recursive: true }));

const png = fakeImageFile(40, 16);
writeFileSync(join(folder, "a.png"), png);
const base64 = Buffer.from(png).toString("base64");
/** Headers of other formats, each of 5 x 3 pixels. */
const bmp = Uint8Array.from({ length: 26 }, (_, i) => ({ 0: 0x42, 1: 0x4d, 14: 40, 18: 5, 22: 3 })[i] ?? 0);
const gif = Uint8Array.from([...Buffer.from("GIF89a"), 5, 0, 3, 0]);
const jpeg = Uint8Array.from([
  ...[0xff, 0xd8, 0xff, 0xe0, 0, 16, ...Buffer.from("JFIF\0"), ...Array<number>(9).fill(0)],
  ...[0xff, 0xc0, 0, 17, 8, 0, 3, 0, 5, 3, ...Array<number>(9).fill(0)],
]);
/** 5 x 3 pixels too: lossy, and lossless. */
const lossyWebp = makeWebp(["VP8 ", [0x10, 0, 0, 0x9d, 0x01, 0x2a, 5, 0, 3, 0]]);
const losslessWebp = makeWebp(["VP8L", [0x2f, 4, 2 << 6, 0, 0]]);
const code = (work: Promise<unknown>) => work.then(() => "loaded").catch((error: { code: string }) => error.code);
const answer = async (body: Uint8Array, status = 200) => new Response(body as never, { status });

describe("an image is loaded", () => {
  it.each([
    ["bytes", { bytes: png }],
    ["a path", { path: "a.png" }],
    ["base64", { data: base64 }],
    ["a data address", { url: `data:image/png;base64,${base64}` }],
    ["an address", { url: "https://example.org/a.png" }],
  ])("from %s", async (_what, source) => {
    const image = await loadImage(source, { folder, fetch: () => answer(png) });
    expect(image).toMatchObject({ width: 40, height: 16, mimeType: "image/png" });
    expect(image.bytes).toEqual(png);
    expect(image.hash).toBe((await loadImage({ bytes: png })).hash);
    expect(await loadImage(image)).toBe(image);
  });

  it.each([
    ["image/bmp", bmp],
    ["image/gif", gif],
    ["image/jpeg", jpeg],
    ["image/webp", lossyWebp],
    ["image/webp", losslessWebp],
  ])("as %s", async (mimeType, bytes) => {
    expect(await loadImage({ bytes })).toMatchObject({ width: 5, height: 3, mimeType });
  });

  it.each([1, 3, 6, 8, 0, 9])("as a JPEG, turned by EXIF's orientation %i", async (orientation) => {
    const entry = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0];
    const exif = [...Buffer.from("Exif\0\0MM\0*"), 0, 0, 0, 8, 0, 1, ...entry, 0, 0, 0, 0];
    const bytes = Uint8Array.from([0xff, 0xd8, 0xff, 0xe1, 0, exif.length + 2, ...exif, ...jpeg.subarray(2)]);
    const isKnown = orientation >= 1 && orientation <= 8;
    expect(await readOrientation(bytes)).toBe(isKnown ? orientation : 1);
    const size = isKnown && orientation > 4 ? { width: 3, height: 5 } : { width: 5, height: 3 };
    expect(await loadImage({ bytes })).toMatchObject(size);
    expect(await measureImage({ bytes })).toMatchObject(size);
  });

  it.each([1, 3, 6, 8, 0, 9])("as a WebP, turned by EXIF's orientation %i", async (orientation) => {
    for (const [order, prefix] of [
      ["MM", "Exif\0\0"],
      ["II", ""],
    ] as const) {
      const bytes = makeTurnedWebp(orientation, order, prefix);
      const isKnown = orientation >= 1 && orientation <= 8;
      expect(await readOrientation(bytes)).toBe(isKnown ? orientation : 1);
      const size = isKnown && orientation > 4 ? { width: 3, height: 5 } : { width: 5, height: 3 };
      expect(await loadImage({ bytes })).toMatchObject({ ...size, mimeType: "image/webp" });
    }
  });

  it("as a WebP that announces EXIF and has none", async () => {
    const bytes = makeWebp(["VP8X", [0x08, 0, 0, 0, 4, 0, 0, 2, 0, 0]], ["VP8 ", Array<number>(10).fill(0)]);
    expect(await loadImage({ bytes })).toMatchObject({ width: 5, height: 3 });
  });

  it("as a WebP whose EXIF stands far behind its header", async () => {
    const bytes = makeTurnedWebp(6, "II", "", 100_000);
    writeFileSync(join(folder, "turned.webp"), bytes);
    expect(await measureImage({ path: "turned.webp" }, { folder })).toEqual(
      expect.objectContaining({ width: 3, height: 5 }),
    );
    expect(await code(loadImage({ bytes: bytes.subarray(0, 90_000) }))).toBe("data/bad-image");
  });

  it("as JSON without its file", async () => {
    const image = await loadImage({ bytes: png });
    const { hash } = image;
    expect(JSON.parse(JSON.stringify(image))).toEqual({ hash, width: 40, height: 16, mimeType: "image/png" });
  });
});

describe("an image is refused", () => {
  it("if its source is not allowed", async () => {
    expect(await code(loadImage({ path: "a.png" }))).toBe("data/image-refused");
    expect(await code(loadImage({ url: "https://example.org/a.png" }, { folder }))).toBe("data/image-refused");
    const record = { hash: "ab", width: 1, height: 1, mimeType: "image/png" } as const;
    expect(await code(loadImage(record, { folder }))).toBe("data/image-refused");
  });

  it("if it is missing, not an image, or beyond the limits, with the name of its owner", async () => {
    const options = { folder, subject: "row 3", fetch: () => answer(png, 404) };
    const bad = (fields: object) => ({ code: "data/bad-image", subject: "row 3", ...fields });
    await expect(loadImage({ path: "b.png" }, options)).rejects.toMatchObject(
      bad({ received: expect.stringContaining("ENOENT") }),
    );
    await expect(loadImage({ url: "https://example.org" }, options)).rejects.toMatchObject(
      bad({ received: expect.stringContaining("status 404") }),
    );
    await expect(loadImage({ bytes: Buffer.from("no image") }, options)).rejects.toMatchObject(
      bad({ expected: "a PNG, JPEG, WebP, BMP or GIF file" }),
    );
    await expect(loadImage({ bytes: fakeImageFile(0, 5) }, options)).rejects.toMatchObject(
      bad({ received: expect.stringContaining("0 x 5 pixels") }),
    );
    await expect(loadImage({ bytes: png }, { maxPixels: 639, subject: "row 3" })).rejects.toMatchObject(
      bad({ expected: "at most 639", received: "40 x 16" }),
    );
    for (const source of [{ bytes: png }, { path: "a.png" }, { data: base64 }, { url: "https://example.org" }])
      expect(await code(loadImage(source, { folder, maxBytes: 20, fetch: () => answer(png) }))).toBe("data/bad-image");
  });
});

it("an image is measured by its header", async () => {
  writeFileSync(join(folder, "large.png"), Buffer.concat([png, Buffer.alloc(1 << 20)]));
  const size = { width: 40, height: 16 };
  expect(await measureImage({ bytes: png })).toEqual(expect.objectContaining(size));
  expect(await measureImage(await loadImage({ bytes: png }))).toEqual(size);
  // Reads no more than a file's header, so the file may be larger than the limit.
  expect(await measureImage({ path: "large.png" }, { folder, maxBytes: 1000 })).toEqual(expect.objectContaining(size));
  await expect(measureImage({ path: "large.png" }, { folder, maxPixels: 639 })).rejects.toMatchObject({
    code: "data/bad-image",
    expected: "at most 639",
  });
});

/** A WebP file of these parts. */
function makeWebp(...chunks: [name: string, data: number[]][]): Uint8Array {
  const parts = chunks.map(([name, data]) => {
    const head = Buffer.alloc(8);
    head.write(name);
    head.writeUInt32LE(data.length, 4);
    return Buffer.concat([head, Buffer.from(data), Buffer.alloc(data.length % 2)]);
  });
  const body = Buffer.concat([Buffer.from("WEBP"), ...parts]);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(body.length);
  return Uint8Array.from(Buffer.concat([Buffer.from("RIFF"), length, body]));
}

/** A WebP of 5 x 3 pixels as stored, with EXIF in this order of bytes, behind a picture of so many bytes. */
function makeTurnedWebp(orientation: number, order: "MM" | "II", prefix: string, pictureBytes = 10): Uint8Array {
  const two = (value: number) => (order === "MM" ? [0, value] : [value, 0]);
  const four = (value: number) => (order === "MM" ? [0, 0, 0, value] : [value, 0, 0, 0]);
  const tag = order === "MM" ? [0x01, 0x12] : [0x12, 0x01];
  const entry = [...tag, ...two(3), ...four(1), ...two(orientation), 0, 0];
  const exif = [...Buffer.from(prefix + order), ...two(42), ...four(8), ...two(1), ...entry, ...four(0)];
  const header = [0x08, 0, 0, 0, 4, 0, 0, 2, 0, 0];
  return makeWebp(["VP8X", header], ["VP8 ", Array<number>(pictureBytes).fill(0)], ["EXIF", exif]);
}
