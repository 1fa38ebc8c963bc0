import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { EngineError, LoadedImage, Picture } from "@cria/core";
import { encodePng, loadImage } from "@cria/core";
import { readOrientation } from "@cria/core/internal";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LlamaModel } from "../llama-model.js";
import { loadModel } from "../load-model.js";
import { makeTinyProjector, mutateBytes, TinyModels } from "../testing/index.js";
import { toNativeFile } from "./to-native-file.js";

/** Files of each kind, with the pixels that Pillow decodes from them (make-webp-pictures.py). */
const pictures = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../fixtures/pictures/webp-pictures.json"), "utf8"),
) as { name: string; width: number; height: number; file: string; rgb: string }[];
const read = (name: string) =>
  Uint8Array.from(Buffer.from(pictures.find((picture) => picture.name === name)!.file, "base64"));
const rgbOf = (name: string) => [...Buffer.from(pictures.find((p) => p.name === name)!.rgb, "base64")];

const models = new TinyModels();
let model: LlamaModel;
beforeAll(async () => {
  const mmproj = join(models.folder, "mmproj.gguf");
  await makeTinyProjector(mmproj);
  model = await loadModel({ path: await models.write(), mmproj, contextSize: 512, maxSequences: 1, threads: 1 });
});
afterAll(async () => {
  await model.dispose();
  await models.cleanUp();
});

const decode = async (bytes: Uint8Array): Promise<Picture> => model.images!.decode(await loadImage({ bytes }));
const fail = async (bytes: Uint8Array): Promise<EngineError> =>
  decode(bytes).then(
    () => expect.fail("decoded"),
    (error) => error,
  );
const badImage = expect.stringMatching(/^(engine|data)\/bad-image$/);

describe("a WebP is decoded as Pillow decodes it", () => {
  it.each(pictures)("$name", async ({ file, width, height, rgb }) => {
    const bytes = Uint8Array.from(Buffer.from(file, "base64"));
    expect(await loadImage({ bytes })).toMatchObject({ width, height, mimeType: "image/webp" });
    const picture = await decode(bytes);
    expect(picture).toMatchObject({ width, height });
    expect([...picture.rgb]).toEqual([...Buffer.from(rgb, "base64")]);
  });

  it("a first frame that is smaller than its animation: the rest is transparent", async () => {
    const chunks = read("lossless").subarray(12);
    const picture = await decode(makeAnimation({ width: 20, height: 12, x: 4, y: 2, frame: [9, 6], chunks }));
    expect(picture).toMatchObject({ width: 20, height: 12 });
    const expected = Array<number>(20 * 12 * 3).fill(255);
    const rgb = rgbOf("lossless");
    for (let y = 0; y < 6; y++) expected.splice(3 * ((y + 2) * 20 + 4), 27, ...rgb.slice(27 * y, 27 * (y + 1)));
    expect([...picture.rgb]).toEqual(expected);
  });

  it("with whatever stands behind the end of its RIFF", async () => {
    const picture = await decode(Uint8Array.from([...read("lossy"), ...Buffer.from("garbage".repeat(9))]));
    expect([...picture.rgb]).toEqual(rgbOf("lossy"));
  });

  it("and its vectors are those of the same pixels in a PNG", async () => {
    const sample = async (bytes: Uint8Array) => {
      const { tokenIds } = model.images!.place(await loadImage({ bytes }));
      const sequence = model.createSequence();
      const { logprobs } = await sequence.generate(tokenIds, { maxTokens: 4, temperature: 1, seed: 3 });
      sequence.dispose();
      return [...logprobs];
    };
    const bytes = read("orientation-6");
    expect(await sample(bytes)).toEqual(await sample(encodePng(await decode(bytes))));
    expect(await sample(bytes)).not.toEqual(await sample(read("clear")));
  });

  it("by a BMP of its pixels, which are not turned yet", async () => {
    const bytes = read("orientation-6");
    expect(await readOrientation(bytes)).toBe(6);
    const bmp = await toNativeFile(bytes, 9 * 6);
    expect(await loadImage({ bytes: bmp })).toMatchObject({ width: 9, height: 6, mimeType: "image/bmp" });
    expect(await toNativeFile(bmp, 1)).toBe(bmp);
  });
});

describe("a WebP that cannot be decoded is an error", () => {
  it.each(pictures)("$name, cut off anywhere", async ({ name }) => {
    const bytes = read(name);
    // Only the first frame of an animation is read.
    const needed = name === "animation" ? Math.floor(bytes.length / 2) : bytes.length;
    for (let length = 12; length < needed - 1; length += 23)
      expect(await fail(bytes.subarray(0, length)), `${length} bytes`).toMatchObject({ code: badImage });
  });

  it("garbage behind the name of the format", async () => {
    for (const text of ["RIFF....WEBP", "RIFF....WEBPVP8 ", "RIFF....WEBPnonsense and more nonsense"])
      expect(await fail(Buffer.from(text))).toMatchObject({ code: "data/bad-image", subject: "image" });
  });

  it("too many pixels, by the header alone", async () => {
    const huge = read("lossy");
    new DataView(huge.buffer).setUint32(26, 0x3fff3fff, true);
    const image = loadImage({ bytes: huge }, { subject: "row 3" });
    await expect(image).rejects.toMatchObject({
      code: "data/bad-image",
      subject: "row 3",
      received: "16383 x 16383",
    });
    await expect(toNativeFile(huge, 100)).rejects.toMatchObject({ code: "engine/bad-image", expected: "at most 100" });
  });

  it("a picture that is larger than its header says", async () => {
    const huge = read("lossless-alpha");
    const small = makeStill(9, 6, huge.subarray(12));
    expect((await decode(small)).width).toBe(9);
    new DataView(small.buffer).setUint32(30 + 9, 0x3fff | (0x3fff << 14), true);
    expect(await fail(small)).toMatchObject({ code: "engine/bad-image" });
  });

  it("frames that lie outside", async () => {
    const chunks = read("lossless").subarray(12);
    const outside = makeAnimation({ width: 10, height: 8, x: 2, y: 0, frame: [9, 6], chunks });
    expect(await fail(outside)).toMatchObject({ code: badImage });
    const other = makeAnimation({ width: 20, height: 20, x: 2, y: 0, frame: [8, 8], chunks });
    expect(await fail(other)).toMatchObject({ code: badImage });
  });

  it("40 damaged files are refused, or decoded to something; whole files are read after them", async () => {
    for (let seed = 0; seed < 40; seed++) {
      const bytes = mutateBytes(Buffer.from(pictures[seed % pictures.length]!.file, "base64"), seed);
      const image = await loadImage({ bytes }, { maxPixels: 2 ** 16 }).catch(() => null);
      const result = image && (await model.images!.decode(image as LoadedImage).catch((error: EngineError) => error));
      if (result instanceof Error) expect(result).toMatchObject({ code: "engine/bad-image" });
      else if (result) expect(result.rgb.length).toBe(result.width * result.height * 3);
    }
    expect([...(await decode(read("lossless"))).rgb]).toEqual(rgbOf("lossless"));
  });
});

/** An animation of one frame. */
function makeAnimation(options: {
  width: number;
  height: number;
  x: number;
  y: number;
  frame: [number, number];
  chunks: Uint8Array;
}): Uint8Array {
  const { width, height, x, y, frame, chunks } = options;
  const place = [x / 2, y / 2, frame[0] - 1, frame[1] - 1, 100].flatMap(toUint24);
  const anim = [...Buffer.from("ANIM"), 6, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  const length = toUint24(16 + chunks.length);
  return makeStill(width, height, [...anim, ...Buffer.from("ANMF"), ...length, 0, ...place, 0, ...chunks], 0x12);
}

/** A file with an extended header. */
function makeStill(width: number, height: number, chunks: Iterable<number>, flags = 0x10): Uint8Array {
  const size = [...toUint24(width - 1), ...toUint24(height - 1)];
  const body = [...Buffer.from("WEBPVP8X"), 10, 0, 0, 0, flags, 0, 0, 0, ...size, ...chunks];
  return Uint8Array.from([...Buffer.from("RIFF"), ...toUint24(body.length), 0, ...body]);
}

function toUint24(value: number): number[] {
  return [value & 0xff, (value >> 8) & 0xff, value >> 16];
}
