import { readFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { type EngineError, encodePng, loadImage } from "@cria/core";
import { readOrientation } from "@cria/core/internal";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadNative } from "../load-native.js";
import { callNative } from "../native.js";
import type { NativeModel, NativeProjector } from "../native-types.js";
import { makeTinyProjector, mutateBytes, TinyModels } from "../testing/index.js";
import { loadVisionLibrary } from "./vision-library.js";

/** Files of each kind, with the pixels that libvips decodes from them (make-pictures.mjs). */
const pictures = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../fixtures/pictures/pictures.json"), "utf8"),
) as { name: string; width: number; height: number; file: string; rgb: string }[];
const read = (name: string) => Buffer.from(pictures.find((picture) => picture.name === name)!.file, "base64");

const models = new TinyModels();
let model: NativeModel;
let projector: NativeProjector;
beforeAll(async () => {
  model = await loadNative({ path: await models.write(), contextSize: 32, maxSequences: 1, threads: 1 });
  const path = join(models.folder, "mmproj.gguf");
  await makeTinyProjector(path);
  projector = await model.openProjector({ library: loadVisionLibrary(), path, threads: 1, minTokens: 0, maxTokens: 0 });
});
afterAll(async () => {
  await projector.dispose();
  await model.dispose();
  await models.cleanUp();
});

const decode = async (file: Uint8Array, maxPixels = 2 ** 20) => {
  const orientation = await readOrientation(file);
  return callNative(() => projector.decode(file, maxPixels, orientation));
};
const fail = async (file: Uint8Array, maxPixels?: number): Promise<EngineError> =>
  decode(file, maxPixels).then(
    () => expect.fail("decoded"),
    (error) => error,
  );

describe("a picture is decoded as libvips decodes it", () => {
  for (const { name, width, height, file, rgb } of pictures) {
    it(name, async () => {
      const picture = await decode(Buffer.from(file, "base64"));
      expect(picture).toMatchObject({ width, height });
      expect(await loadImage({ bytes: Buffer.from(file, "base64") })).toMatchObject({ width, height });
      const expected = Buffer.from(rgb, "base64");
      const differences = Array.from(picture.rgb, (value, i) => Math.abs(value - expected[i]!));
      // The JPEG standard leaves the transform's rounding and the scaling of colours to the decoder; libvips truncates
      // when it adds white.
      const [most, mostMean] = name.endsWith(".jpg") ? [40, 2.5] : /rgba|alpha/.test(name) ? [1, 1] : [0, 0];
      expect(Math.max(...differences)).toBeLessThanOrEqual(most);
      const mean = differences.reduce((sum, x) => sum + x, 0) / differences.length;
      expect(mean).toBeLessThanOrEqual(mostMean);
    });
  }

  it("and so are files of encodePng", async () => {
    const rgb = Uint8Array.from({ length: 50 * 33 * 3 }, (_, i) => (i * 2654435761) >>> 13);
    expect(await decode(encodePng({ width: 50, height: 33, rgb }))).toEqual({ width: 50, height: 33, rgb });
  });
});

describe("a picture that cannot be decoded is an error", () => {
  for (const { name, file } of pictures) {
    it(`${name}, cut off`, async () => {
      const bytes = Buffer.from(file, "base64");
      // Data behind a GIF's first picture are not read.
      for (const part of name === "two.gif" ? [0.3] : [0.3, 0.8]) {
        expect(await fail(bytes.subarray(0, bytes.length * part))).toMatchObject({ code: "engine/bad-image" });
      }
    });
  }

  it("not a picture, or of a kind that is not read", async () => {
    for (const text of ["", "hello", "P6 1 1 255\n123", "RIFF....WEBPVP8 "]) {
      expect(await fail(Buffer.from(text))).toMatchObject({
        code: "engine/bad-image",
        expected: "a PNG, JPEG, BMP or GIF file",
      });
    }
  });

  it("more pixels than the limit, by the header alone", async () => {
    expect((await decode(read("rgb.png"), 21 * 13)).width).toBe(21);
    const tooLarge = { code: "engine/bad-image", expected: "at most 272", received: "21 x 13" };
    expect(await fail(read("rgb.png"), 21 * 13 - 1)).toMatchObject(tooLarge);
    const huge = read("24-bit.bmp");
    huge.writeInt32LE(2 ** 20, 18);
    huge.writeInt32LE(2 ** 20, 22);
    expect(await fail(huge)).toMatchObject({ code: "engine/bad-image", received: "1048576 x 1048576" });
  });

  it("an unknown part that must be read: the message is plain text, for any name of the part", async () => {
    const png = read("rgb.png");
    // A reader may skip a part whose name begins with a lower-case letter, and no other part.
    png.write("\x07\x1b\xff\x01", png.indexOf("IEND"), "latin1");
    const { received } = await fail(png);
    expect(received).toContain("???? PNG chunk not known");
    expect(received).toMatch(/^[\x20-\x7e\n]*$/);
  });

  it("a small file that unfolds to gigabytes allocates none of them", async () => {
    const bomb = readPngWith(Buffer.alloc(64 * 2 ** 20));
    expect(bomb.length).toBeLessThan(2 ** 17);
    const before = process.memoryUsage().rss;
    expect(await fail(bomb)).toMatchObject({ code: "engine/bad-image", received: expect.stringMatching(/outofmem/) });
    expect(process.memoryUsage().rss - before).toBeLessThan(40 * 2 ** 20);
  });
});

/** The PNG of 21 x 13 pixels, with other rows in its compressed part. */
function readPngWith(rows: Buffer): Buffer {
  const png = read("rgb.png");
  const at = png.indexOf("IDAT") - 4;
  const end = at + 12 + png.readUInt32BE(at);
  const data = deflateSync(rows);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  // stb does not check the checksum.
  const chunk = Buffer.concat([length, Buffer.from("IDAT"), data, Buffer.alloc(4)]);
  return Buffer.concat([png.subarray(0, at), chunk, png.subarray(end)]);
}

it("200 damaged pictures are refused, or decoded to something (1,000: scripts/nightly/image-mutants.mjs)", async () => {
  let refused = 0;
  for (let seed = 0; seed < 200; seed++) {
    const file = Buffer.from(pictures[seed % pictures.length]!.file, "base64");
    const mutant = mutateBytes(file, seed, seed % 2 ? 100 : undefined);
    const result = await decode(mutant, 2 ** 16).catch((error: EngineError) => error);
    if (result instanceof Error) {
      expect(result.code).toBe("engine/bad-image");
      refused++;
    } else expect(result.rgb.length).toBe(result.width * result.height * 3);
  }
  expect(refused).toBeGreaterThan(50);
  expect(refused).toBeLessThan(190);
});
